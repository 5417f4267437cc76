"""Cards and tables as plain data for the players. Knows nothing of Gradio."""

import math
from typing import Any, NamedTuple

import numpy as np

from engine.types import MethodRun, Run
from viz import theme
from viz.figures import words
from viz.figures.absent import RANKING, not_given
from viz.figures.bins import selective_masks
from viz.figures.ttft_split import speed_words, ttft_split_info
from viz.panels.verdict import EMPTY, chooses, num_recomputed

NUM_TOP, MAX_COLUMNS = 20, 5
WITHOUT_CHUNKS = ("full", "prefix_cache")
CONTEXT_WORDS = {
    "system": "behind the system prompt",
    "alone": "alone",
    "primed": "primed",
    "primed-mean": "primed, mean",
    "primed-one": "primed, one version",
}
_COST_NOTE = (
    "The one-off cost is paid once per chunk, whoever asks about it (inferred from the chunks computed here where others were found); "
    "break-even is the number of requests after which the saved time has paid for it."
)
FACTS = (
    ("ROUGE-L", "rouge_l", ".2f", "Overlap with the gold answer, 0 to 1; higher is better"),
    ("F1", "f1", ".2f", "Word overlap with the gold answer, 0 to 1; higher is better"),
    ("Gold NLL", "gold_nll", ".3f", "How unlikely the gold answer is to the model, nats per token; lower is better"),
    ("KL to full", "kl_to_full", ".3f", "How far the next-token distributions are from full prefill, nats; lower is closer"),
    ("Answer span", "span_recall", ".0%", "Share of the tokens that hold the answer which were recomputed"),
)


def answer_cards(run: Run | None) -> dict[str, Any]:
    """Returns one card per method: time, answer, facts and whether the answer equals full prefill's."""
    if run is None:
        return {"cards": [], "gold": "", "reason": EMPTY, "help": []}
    full = run.method("full")
    cards = [_card(run, method, full) for method in run.methods]
    return {"cards": cards, "gold": " / ".join(run.gold_answers), "reason": "", "help": [(name, text) for name, _, _, text in FACTS]}


def _card(run: Run, method: MethodRun, full: MethodRun | None) -> dict[str, Any]:
    cut = _common_prefix(method.answer, full.answer) if full is not None else len(method.answer)
    share = num_recomputed(run, method) / max(1, run.num_doc_tokens)
    return {
        "title": theme.method_label(method.method),
        "color": theme.method_color(method.method),
        "time": words.seconds(method.ttft_s),
        "share": f"{words.percent(share)} of document tokens computed",
        "speed": _speed(run, method, full),
        "answer_same": method.answer[:cut],
        "answer_rest": method.answer[cut:] or ("" if method.answer.strip() else _no_answer(method)),
        "same": _sameness(method, full),
        "facts": quality_facts(method),
    }


def quality_facts(method: MethodRun) -> list[tuple[str, str, str]]:
    """Returns name, value and meaning of every measure of quality."""
    return [(name, _fact(getattr(method.quality, key), form), text) for name, key, form, text in FACTS]


def _speed(run: Run, method: MethodRun, full: MethodRun | None) -> str:
    row = next(row for row in ttft_split_info(run).rows if row.method == method.method)
    inside = method.server_ttft_s
    where = "" if inside is None else f" at the client ({words.seconds(inside)} inside the server)"
    return f"to first token{where}" if full is None or method is full else f"to first token{where}, {speed_words(row)}"


def _common_prefix(text: str, other: str) -> int:
    """Returns the length of the words two texts begin with alike."""
    cut = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    return cut if cut in (len(text), 0) else text.rfind(" ", 0, cut + 1) + 1


def _no_answer(method: MethodRun) -> str:
    return "(empty answer)" if len(method.answer_ids) else "(no answer was generated, only token probabilities were measured)"


def _sameness(method: MethodRun, full: MethodRun | None) -> str:
    if full is None:
        return "Full prefill was not run, so there is nothing to compare with."
    if method is full:
        return "The reference: every token computed."
    if not len(method.answer_ids):
        return "Nothing to compare."
    if np.array_equal(method.answer_ids, full.answer_ids) and method.answer == full.answer:
        return "Same answer as full prefill, token for token."
    first = method.quality.first_diverging_token
    if first is None:
        return "Differs from full prefill (in length only)."
    return f"Differs from full prefill from answer token {first + 1} on (underlined)."


def _fact(value: float | None, form: str) -> str:
    return "–" if value is None or not math.isfinite(value) else format(value, form).replace("%", " %")


def counts_table(run: Run | None) -> dict[str, Any]:
    """Returns what each method computed, loaded and saved: one column per method, one row per method where there are many."""
    if run is None or not run.methods:
        return {"caption": "Counts", "columns": [], "rows": [], "reason": EMPTY, "note": ""}
    rows = [["", *(theme.method_label(method.method) for method in run.methods)]]
    counts = (_AT_CLIENT, _INSIDE, *_COUNTS[1:]) if run.provenance.served_by else _COUNTS
    rows += [[name, *(cell(run, method) for method in run.methods)] for name, cell in counts]
    if len(run.methods) > MAX_COLUMNS:
        rows = [list(row) for row in zip(*rows, strict=True)]
    num_new = sum(chunk.source == "computed" for chunk in run.chunks)
    found = f"Chunk caches of this run: {len(run.chunks) - num_new} found in the store, {num_new} computed for it."
    if not any(chunk.cache_hash for chunk in run.chunks):
        found = "No chunk cache was read in this run."
    note = f"{found} {_COST_NOTE} Page cache of the disk: {run.provenance.page_cache}."
    return {"caption": "What was computed, loaded and saved", "columns": rows[0], "rows": rows[1:], "reason": "", "note": note}


def _spread(_: Run, method: MethodRun) -> str:
    values = method.ttft_repeats_s
    span = f" ({words.seconds(min(values))} to {words.seconds(max(values))})" if len(values) > 1 else ""
    return f"{words.seconds(method.ttft_s)}{span}"


def _saved(run: Run, method: MethodRun) -> str:
    saved = saved_seconds(run, method)
    if saved is None:
        return "–"
    full = run.method("full")
    share = f"{words.percent(abs(saved) / full.ttft_s)}" if full and full.ttft_s > 0 else "–"
    return f"{words.seconds(saved)} ({share})" if saved >= 0 else f"none: {words.seconds(-saved)} ({share}) slower"


def saved_seconds(run: Run, method: MethodRun) -> float | None:
    """Returns the time to first token a method saves against full prefill, None without one."""
    full = run.method("full")
    return None if full is None or full is method else full.ttft_s - method.ttft_s


class OneOffCost(NamedTuple):
    """Seconds to compute the caches of all chunks; `exact` is False where some were found in the store and their time is inferred."""

    seconds: float
    exact: bool


def one_off_cost(run: Run) -> OneOffCost | None:
    """Returns what computing all caches costs, by the measured time per token where only some were computed in this run; None for none."""
    measured = [chunk for chunk in run.chunks if chunk.precompute_s > 0]
    num_measured = sum(chunk.stop - chunk.start for chunk in measured)
    if not num_measured:
        return None
    num_all = sum(chunk.stop - chunk.start for chunk in run.chunks)
    return OneOffCost(sum(chunk.precompute_s for chunk in measured) * num_all / num_measured, len(measured) == len(run.chunks))


def break_even(run: Run, method: MethodRun) -> int | None:
    """Returns after how many requests the saved time has paid for computing the caches, None for never or not known."""
    saved, cost = saved_seconds(run, method), one_off_cost(run)
    return None if cost is None or saved is None or saved <= 0 else max(1, math.ceil(cost.seconds / saved - 1e-9))


def _one_off(run: Run, method: MethodRun) -> str:
    if method.method in WITHOUT_CHUNKS:
        return "–"
    cost, stored = one_off_cost(run), words.size(sum(chunk.size_bytes for chunk in run.chunks))
    if cost is None:
        return f"time not measured in this run, {stored}"
    return f"{'' if cost.exact else 'about '}{words.seconds(cost.seconds)}, {stored}"


def _pays(run: Run, method: MethodRun) -> str:
    saved, cost = saved_seconds(run, method), one_off_cost(run)
    if method.method in WITHOUT_CHUNKS or saved is None or (cost is None and saved > 0):
        return "–"
    num = break_even(run, method)
    about = "" if cost is None or cost.exact else "about "
    return "never" if num is None else f"after {about}{num} request{'s' if num > 1 else ''}"


def _of_documents(run: Run, num: int) -> str:
    return f"{num:,} of {run.num_doc_tokens:,} ({words.percent(num / max(1, run.num_doc_tokens))})"


def _work(run: Run, method: MethodRun) -> str:
    """Returns the share of all rows of all layers that were computed; layers where a method runs every token count whole."""
    per_layer = method.layer_rows if method.layer_rows is not None else np.full(run.num_layers, len(method.rows))
    return words.percent(float(per_layer.sum()) / max(1, len(run.tokens) * run.num_layers))


_COUNTS = (
    ("Time to first token", _spread),
    ("Saved against full prefill", _saved),
    ("Document tokens recomputed", lambda run, m: _of_documents(run, num_recomputed(run, m))),
    ("Rows × layers, of full prefill", _work),
    ("Cache hits (tokens reused)", lambda run, m: _of_documents(run, m.num_cache_hits)),
    ("Question tokens computed", lambda run, m: f"{int((m.rows >= run.question_start).sum()):,}"),
    ("KV loaded", lambda run, m: words.size(m.loaded_bytes)),
    ("Chunks cached", lambda run, m: "–" if m.method in WITHOUT_CHUNKS else CONTEXT_WORDS.get(m.chunk_context, m.chunk_context)),
    ("One-off cost of the caches", _one_off),
    ("Break-even", _pays),
)

_AT_CLIENT = ("Time to first token, at the client", _spread)
_INSIDE = (
    "Time to first token, inside the server",
    lambda run, m: "not told; start it with --enable-metrics" if m.server_ttft_s is None else words.seconds(m.server_ttft_s),
)


def top_tokens(run: Run | None, method_name: str) -> dict[str, Any]:
    """Returns the best-ranked tokens as a table, the text twin of the map; with the methods that recompute each."""
    method = run.method(method_name) if run else None
    caption = f"Top {NUM_TOP} tokens of {theme.method_label(method_name)}"
    columns = ["Rank", "Token", "Chunk", "Position", "Score", "Recomputed", "Also by"]
    if run is None or method is None or method.ranking is None:
        reason = _no_ranking(run, method) if run and method else EMPTY
        return {"caption": caption, "columns": columns, "rows": [], "reason": reason, "note": ""}
    others = {name: mask for name, mask in selective_masks(run).items() if name != method_name}
    rows = [_token_row(run, method, others, rank, int(p)) for rank, p in enumerate(method.ranking[:NUM_TOP], start=1)]
    note = (
        ""
        if method.scores is not None
        else f"{theme.method_label(method_name)} ranks tokens without scores: it does not look at the question."
    )
    return {"caption": caption, "columns": columns, "rows": rows, "reason": "", "note": note}


def _no_ranking(run: Run, method: MethodRun) -> str:
    why = f"{theme.method_label(method.method)} does not rank tokens."
    return not_given(run, RANKING, why) if chooses(run, method) else why


def _token_row(run: Run, method: MethodRun, others: dict[str, np.ndarray], rank: int, position: int) -> list[str]:
    chunk = next((f"{i} {c.title}" for i, c in enumerate(run.chunks, start=1) if c.start <= position < c.stop), "–")
    score = f"{method.scores[position - run.system_len]:.2e}" if method.scores is not None else "–"
    token = run.tokens[position][:40].replace("\n", "⏎").replace(" ", "␣")
    also = sum(bool(mask[position - run.system_len]) for mask in others.values())
    done = "yes" if position in method.rows else "no"
    return [str(rank), token, words.shorten(chunk, 60), f"{position:,}", score, done, f"{also} of {len(others)}" if others else "–"]
