"""The words above the pictures: where the numbers come from and what came out. Knows nothing of Gradio."""

import re
from typing import Any

from engine.types import MethodRun, Run
from viz import theme
from viz.figures import words
from viz.figures.absent import notice
from viz.figures.ttft_split import speed_words, ttft_split_info

EMPTY = "No run yet. Pick a question and press Run."
PLAIN_METHODS = ("full", "reuse", "prefix_cache")
MANY = 3


def banner(run: Run | None) -> dict[str, Any]:
    """Returns badge, details, question, verdict and notices of a run."""
    if run is None:
        return {"kind": "none", "badge": "NO RUN", "details": "", "question": "", "verdict": EMPTY, "notices": []}
    return {
        "kind": run.provenance.mode,
        "badge": run.provenance.mode.upper(),
        "server": run.provenance.served_by or "",
        "details": provenance_line(run),
        "question": run.question,
        "verdict": verdict(run),
        "ranking": ranking_line(run),
        "notices": [*filter(None, [notice(run)]), *run.notices],
    }


def provenance_line(run: Run) -> str:
    """Returns model, precision, device, disk, date and number of repeats of a run."""
    source = run.provenance
    device = re.sub(r"\((R|TM)\)", "", source.device)
    threads = "" if any(word in device.lower() for word in ("nvidia", "cuda")) else f"{source.num_threads} threads"
    disk = f"disk {source.disk_mb_per_s:,.0f} MB/s" if source.disk_mb_per_s else ""
    num = max((len(method.ttft_repeats_s) for method in run.methods), default=0)
    repeats = "measured once" if num == 1 else f"median of {num}"
    where = "TTFT at the client and inside the server" if source.served_by else ""
    return " · ".join(part for part in (source.model, source.dtype, device, threads, disk, source.created[:10], repeats, where) if part)


def hero(run: Run) -> MethodRun | None:
    """Returns the method the sentence is about: QCFuse, else the first selective one, else the first that is not full prefill."""
    selective = [m for m in run.methods if m.method not in PLAIN_METHODS]
    others = [m for m in run.methods if m.method != "full"]
    return run.method("qcfuse") or next(iter([*selective, *others, *run.methods]), None)


def verdict(run: Run) -> str:
    """Returns one honest sentence about the run."""
    method, full = hero(run), run.method("full")
    if method is None:
        return "The run holds no method."
    name = theme.method_label(method.method)
    num_done = num_recomputed(run, method)
    done = f"{name} recomputed {words.percent(num_done / max(1, run.num_doc_tokens))} of {run.num_doc_tokens:,} document tokens"
    if full is None or full is method:
        return f"{done}: first token after {words.seconds(method.ttft_s)}{_quality(method, None)}."
    speed = f"{words.seconds(method.ttft_s)} instead of {words.seconds(full.ttft_s)} ({_speed(run, method)})"
    return f"{done}: first token after {speed}{_quality(method, full)}."


def ranking_line(run: Run) -> str:
    """Returns which of many methods were closest to full prefill and which were fastest; '' for few."""
    others = [method for method in run.methods if method.method != "full"]
    if len(others) < MANY:
        return ""
    return f"Of {len(others)} methods, {'; '.join(filter(None, (_closest(others), _fastest(others))))}."


def _closest(methods: list[MethodRun]) -> str:
    known = [(method.quality.kl_to_full, method.method) for method in methods if method.quality.kl_to_full is not None]
    best = [f"{theme.method_label(name)} (KL {kl:.3f})" for kl, name in sorted(known)[:2]]
    return f"closest to full prefill on this question: {', then '.join(best)}" if best else ""


def _fastest(methods: list[MethodRun]) -> str:
    """Returns the fastest method and those whose spread overlaps with its own."""
    ordered = sorted(methods, key=lambda method: method.ttft_s)
    slowest = max(ordered[0].ttft_repeats_s, default=ordered[0].ttft_s)
    level = [m for m in ordered if min(m.ttft_repeats_s, default=m.ttft_s) <= slowest]
    names = ", ".join(theme.method_label(method.method) for method in level[:MANY])
    more = f" and {len(level) - MANY} more" if len(level) > MANY else ""
    return f"fastest: {names}{more}{' (spreads overlap)' if len(level) > 1 else ''}"


def num_recomputed(run: Run, method: MethodRun) -> int:
    """Returns how many document tokens a method recomputed."""
    return int(((method.rows >= run.system_len) & (method.rows < run.question_start)).sum())


def chooses(run: Run, method: MethodRun) -> bool:
    """Returns whether a method recomputed some, but not all document tokens."""
    return 0 < num_recomputed(run, method) < run.num_doc_tokens


def _speed(run: Run, method: MethodRun) -> str:
    row = next(row for row in ttft_split_info(run).rows if row.method == method.method)
    return speed_words(row) if row.separable else "no clear difference, the spreads overlap"


def _quality(method: MethodRun, full: MethodRun | None) -> str:
    own = method.quality
    if own.rouge_l is None:
        if full is None or own.kl_to_full is None:
            return ""
        return f", KL to full prefill {own.kl_to_full:.3f} nats"
    if full is None or full.quality.rouge_l is None:
        return f", ROUGE-L {own.rouge_l:.2f}"
    gap = own.rouge_l - full.quality.rouge_l
    word = "" if abs(gap) < 0.005 else " (better)" if gap > 0 else " (worse)"
    return f", ROUGE-L {own.rouge_l:.2f} vs {full.quality.rouge_l:.2f}{word}"
