"""What a server does not give out, in words that are safe to draw: such a picture is left empty, and says why."""

from engine.types import Run

KV = "the keys and values it computed, so how far they are from full prefill's is not known"
SCORES = "the scores that a method chooses by"
RANKING = "how it ranked the tokens, only which of them it recomputed"
LAYERS = "times layer by layer"
PROBABILITIES = "probabilities, keys and values, scores, rankings or times per layer"


def not_given(run: Run | None, what: str, otherwise: str = "") -> str:
    """Returns that the server which computed a run does not give `what` out; `otherwise` for a run of the built-in engine or none."""
    server = run.provenance.served_by if run else None
    return f"{server} does not give out {what}." if server else otherwise


def notice(run: Run) -> str:
    """Returns one sentence on all that a server's run is without, "" for the built-in engine's."""
    said = not_given(run, PROBABILITIES)
    return f"{said} What needs them is left empty here (NLL, KL, KV distance, scores); the built-in engine shows it." if said else ""
