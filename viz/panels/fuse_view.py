"""From a run to the values of every output of the Fuse tab. Knows nothing of Gradio."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from engine.types import MethodRun, Run, Status, budget
from viz import theme
from viz.figures.absent import KV, LAYERS, RANKING, SCORES, not_given
from viz.figures.agreement import agreement_figure, agreement_info
from viz.figures.critical_attention import critical_attention_figure, critical_attention_info, no_scores_reason
from viz.figures.kv_distance import NO_DISTANCE, kv_distance_figure, kv_distance_info
from viz.figures.overlap import overlap_figure, overlap_info
from viz.figures.selection_map import selection_map_figure, selection_map_info
from viz.figures.timeline import NO_TIMELINE, timeline_figure, timeline_info
from viz.figures.token_text import token_text_data, token_text_info
from viz.figures.ttft_split import ttft_split_figure, ttft_split_info
from viz.panels.tables import answer_cards, counts_table, top_tokens
from viz.panels.verdict import EMPTY, banner, chooses, hero

MARKS = {"idle": "", "busy": "▶", "done": "✓", "error": "!"}


class RunView(NamedTuple):
    """What depends on the run alone."""

    banner: dict[str, Any]
    cards: dict[str, Any]
    ttft: go.Figure
    timeline: go.Figure
    counts: dict[str, Any]
    kv: go.Figure


class MethodView(NamedTuple):
    """What depends on the run, the method looked at and the ratio previewed."""

    map: go.Figure
    attention: go.Figure
    text: dict[str, Any]
    top: dict[str, Any]


class ChoiceView(NamedTuple):
    """What compares the choices of all methods at the ratio previewed."""

    agreement: go.Figure
    overlap: go.Figure


def run_view(run: Run | None) -> RunView:
    """Returns the pictures of a run, or empty ones that say what to do."""
    return RunView(
        banner=banner(run),
        cards=answer_cards(run),
        ttft=ttft_split_figure(ttft_split_info(run) if run else None, EMPTY),
        timeline=timeline_figure(timeline_info(run) if run else None, not_given(run, LAYERS, NO_TIMELINE) if run else EMPTY),
        counts=counts_table(run),
        kv=kv_distance_figure(kv_distance_info(run) if run else None, not_given(run, KV, NO_DISTANCE)),
    )


def method_view(run: Run | None, method_name: str, ratio: float | None = None) -> MethodView:
    """Returns the pictures of one method, with the tokens it would pick at another ratio where it ranked them."""
    shown = at_ratio(run, ratio) if run is not None and ratio is not None else run
    method = shown.method(method_name) if shown else None
    why = _no_scores(shown, method) if shown and method else EMPTY
    return MethodView(
        map=selection_map_figure(selection_map_info(shown, method_name) if shown else None, EMPTY),
        attention=critical_attention_figure(critical_attention_info(shown, method_name) if shown else None, why),
        text=token_text_data(token_text_info(shown, method_name) if shown else None, EMPTY),
        top=top_tokens(shown, method_name),
    )


def _no_scores(run: Run, method: MethodRun) -> str:
    """Returns why a method's scores are not shown: it has none, or a server keeps them to itself."""
    why = no_scores_reason(method, run.num_doc_tokens)
    return not_given(run, SCORES, why) if chooses(run, method) else why


def choice_view(run: Run | None, ratio: float | None = None) -> ChoiceView:
    """Returns who chose which token, and how much every two methods agree."""
    if run is None:
        return ChoiceView(agreement_figure(None, EMPTY), overlap_figure(None, EMPTY))
    info = agreement_info(at_ratio(run, run.ratio if ratio is None else ratio))
    return ChoiceView(agreement_figure(info), overlap_figure(overlap_info(info)))


def at_ratio(run: Run, ratio: float) -> Run:
    """Returns the run with the rows of all methods as they would be at `ratio`: exact, from their full rankings.

    A method without a ranking keeps its rows.
    """
    return run if ratio == run.ratio else replace(run, methods=tuple(_at_ratio(run, m, ratio) for m in run.methods), ratio=ratio)


def _at_ratio(run: Run, method: MethodRun, ratio: float) -> MethodRun:
    if method.ranking is None:
        return method
    picked = method.ranking[: budget(ratio, run.num_doc_tokens)]
    outside = method.rows[(method.rows < run.system_len) | (method.rows >= run.question_start)]
    rows = np.sort(np.concatenate([picked, outside])).astype(np.int32)
    per_layer = method.layer_rows
    if per_layer is not None:
        per_layer = np.where(per_layer == len(method.rows), len(rows), per_layer).astype(np.int32)
    return replace(method, rows=rows, layer_rows=per_layer)


def preview_note(run: Run | None, method_name: str, ratio: float) -> str:
    """Returns what the ratio slider over the map shows: what is measured, and what follows from the ranking."""
    method = run.method(method_name) if run else None
    if run is None or method is None:
        return ""
    name = theme.method_label(method_name)
    if method.ranking is None and run.provenance.served_by and chooses(run, method):
        return f"{not_given(run, RANKING)} The picture is the same at every ratio; times and answers are measured at ratio {run.ratio:.2f}."
    if method.ranking is None:
        return f"{name} has no ranking, so its picture is the same at every ratio. Times and answers are measured at ratio {run.ratio:.2f}."
    if abs(ratio - run.ratio) < 1e-9:
        return f"This is the set that was run (ratio {run.ratio:.2f}): times and answers are measured at it, the set is exact at any ratio."
    num = budget(ratio, run.num_doc_tokens)
    exact = f"Preview: the exact {num:,} tokens of {name} for ratio {ratio:.2f}, from the recorded ranking."
    return f"{exact} Times and answers are those measured at ratio {run.ratio:.2f}."


def preview_label(run: Run | None) -> str:
    """Returns the label of the ratio slider, which marks the measured ratio."""
    return "Ratio shown" if run is None else f"Ratio shown (times are measured at {run.ratio:.2f})"


def first_method(run: Run | None, wanted: str | None = None) -> str:
    """Returns the method to look at: the wanted one where the run has it, else the one the verdict is about."""
    if run is None:
        return wanted or "qcfuse"
    best: MethodRun | None = run.method(wanted) if wanted else None
    best = best or hero(run)
    return best.method if best else "qcfuse"


def status(kind: str, message: str, fraction: float = 0.0, answers: dict[str, str] | None = None) -> dict[str, Any]:
    """Returns the status line's data; kind is idle, busy, done or error."""
    shown = [(theme.method_label(name), text[-600:]) for name, text in (answers or {}).items()]
    return {"kind": kind, "mark": MARKS[kind], "message": message, "fraction": fraction, "answers": shown}


def progress(item: Status) -> dict[str, Any]:
    """Returns the status line of a running or waiting request."""
    ahead = item.queue_position
    wait = f"Waiting: {ahead} request{'s' if ahead > 1 else ''} ahead. " if ahead else ""
    fraction = item.fraction if np.isfinite(item.fraction) else 0.0
    return status("busy", wait + method_named(item.message), fraction, dict(item.answers))


def method_named(message: str) -> str:
    """Returns a message that may begin with a method's name and a colon, with the name as shown to people."""
    name, colon, rest = message.partition(": ")
    return f"{theme.method_label(name)}: {rest}" if colon and theme.method_family(name) in theme.METHODS else message


def finished(run: Run) -> dict[str, Any]:
    """Returns the status line of a run that has ended."""
    names = ", ".join(theme.method_label(method.method) for method in run.methods)
    where = f"by {run.provenance.served_by}" if run.provenance.served_by else "on this machine"
    return status("done", f"Done: {names}, measured just now {where}." if run.provenance.mode == "live" else f"Done: {names}.")
