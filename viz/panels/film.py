"""What the Play tab shows: the run of the Fuse tab, or the recorded one while the engine cannot deliver. Knows nothing of Gradio."""

from dataclasses import dataclass
from typing import Any

from engine.errors import EngineError
from engine.types import Run
from viz.panels.contract import SessionLike
from viz.panels.fuse_flip_view import FlipPair
from viz.panels.players import unpack


@dataclass(frozen=True, eq=False, slots=True)
class Film:
    """A run for the player.

    Args:
        ghost: the other run of the pair live and recorded, outlined under the one shown.
        flip: a second question over the same chunks, answered by a method of `run`.
        reason: why it is not the run that was asked for, in one line; "" where it is.
    """

    run: Run
    ghost: Run | None = None
    flip: Run | None = None
    reason: str = ""


def film_of(session: SessionLike, run: Run | None, status: Any, pair: FlipPair | None) -> Film | None:
    """Returns what to play for the run of the Fuse tab, its status line's value and its comparison of two questions."""
    if run is None:
        return None
    kind, message = _status(status)
    recorded, problem = _recorded(session, run) if run.provenance.mode == "live" else (None, "")
    failing = kind in ("busy", "error")
    shown, ghost = (recorded, run) if failing and recorded else (run, recorded)
    return Film(shown, ghost, _second_question(shown, pair), _reason(kind, message, shown) if failing else problem)


def _recorded(session: SessionLike, run: Run) -> tuple[Run | None, str]:
    """Returns the recorded run of a run's scenario, or None and the reason."""
    if run.scenario not in {scenario.name for scenario in session.scenarios()}:
        return None, ""
    try:
        return session.recorded(run.scenario), ""
    except EngineError as error:
        return None, str(error)


def _second_question(run: Run, pair: FlipPair | None) -> Run | None:
    fits = pair is not None and pair.is_about(run) and pair.a.question == run.question and run.method(pair.method) is not None
    return pair.b if pair is not None and fits else None


def _status(value: Any) -> tuple[str, str]:
    """Returns kind and message of a status line's value, which comes back from the browser and may be anything."""
    try:
        data = unpack(value)
        return str(data["kind"]), str(data["message"])
    except (KeyError, TypeError, ValueError):
        return "idle", ""


def _reason(kind: str, message: str, run: Run) -> str:
    which = "recorded run" if run.provenance.mode == "replay" else "run before it"
    return f"{message} {'Meanwhile' if kind == 'busy' else 'Instead'} the {which} plays.".strip()
