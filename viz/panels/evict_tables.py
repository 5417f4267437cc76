"""Tables of the Evict tab: results of every policy, the next victims, what happened at the regretted moments."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.cache_types import CacheRun
from engine.replay_victims import Victim
from viz import theme
from viz.figures.evict_misses import ORDER, evict_misses_info
from viz.figures.evict_regret import RegretCase, RegretInfo, bin_words
from viz.figures.evict_scores import FLOOR, LIMIT, by_policy, floor_of, gap_closed
from viz.figures.words import seconds
from viz.panels.evict_board import Board

NONE = "–"
MAX_GROUPS, FAR = 8, 1e15


def results_table(board: Board | None) -> dict[str, Any]:
    """Returns one row a policy, of the first seed: the numbers behind the pictures."""
    columns = [
        "Policy",
        "Hit tokens, 2nd half",
        "Hit tokens, all",
        "Hit blocks, 2nd half",
        "Gap closed",
        "Measured first token" if board and board.kind != "simulated" else "Modelled first token",
        "against LRU",
        "Evictions",
        "Regretted",
        "µs an eviction",
    ]
    rows = [_result_row(own[0], floor_of(own[0], board.runs)) for own in by_policy(board.runs).values()] if board else []
    note = "Gap closed: (policy − LRU) / (MIN − LRU), block hits of the second half. Regretted: MIN still had the block when asked for."
    if board and len({run.seed for run in board.runs}) > 1:
        note = f"First of {len({run.seed for run in board.runs})} seeds; the picture above shows mean and range over all. {note}"
    return _table(f"Every policy{_badge(board)}", columns, rows, "Nothing was replayed.", note)


def _result_row(run: CacheRun, floor: CacheRun | None) -> list[str]:
    half, whole, gap = run.second_half, run.score(), gap_closed(run, floor)
    regretted = float(run.evictions.regret.mean()) if len(run.evictions.regret) else None
    slower = half.modelled_ttft_s / floor.second_half.modelled_ttft_s - 1 if floor and floor.second_half.modelled_ttft_s else None
    return [
        theme.policy_style(run.policy).label,
        _percent(half.hit_tokens),
        _percent(whole.hit_tokens),
        _percent(half.hit_blocks),
        NONE if gap is None or run.policy in (FLOOR, LIMIT) else f"{100 * gap:.0f} %".replace("-", "−"),
        seconds(half.modelled_ttft_s),
        NONE if slower is None or run.policy == FLOOR else f"{100 * slower:+.1f} %".replace("-", "−"),
        f"{len(run.evictions.block):,}",
        NONE if regretted is None or run.limit_hit_blocks is None else _percent(regretted),
        NONE if run.us_per_eviction is None else f"{run.us_per_eviction:.0f}",
    ]


def misses_table(board: Board | None) -> dict[str, Any]:
    """Returns prompt tokens of the second half by what became of them."""
    info = evict_misses_info(board.runs) if board else None
    rows = [[theme.policy_style(row.policy).label, *(f"{num:,}" for num in row.num_tokens)] for row in info.rows] if info else []
    return _table(f"Prompt tokens of the second half{_badge(board)}", ["Policy", *ORDER], rows, "Nothing was replayed.")


def contents_table(run: CacheRun | None, badge: str) -> dict[str, Any]:
    """Returns what the cache held at five moments, by queue and by type, and what had been learned."""
    if run is None or not len(run.snapshots.request):
        return _table("What the cache held", [], [], "No moments were recorded.")
    s = run.snapshots
    picks = np.unique(np.linspace(0, len(s.request) - 1, 5).round().astype(int))
    named = [("queue " + name, s.queues[picks, i]) for i, name in enumerate(list(theme.QUEUES)[:4])]
    named += [(name + " tokens", s.kinds[picks, i]) for i, name in enumerate(theme.KINDS)]
    rows = [[name, *(f"{int(value):,}" for value in values)] for name, values in named]
    rows += [[name, *(f"{value:.3g}" for value in s.weights[picks, i])] for i, name in enumerate(s.weight_names)]
    columns = ["Blocks, then weights", *(f"after request {number:,}" for number in s.request[picks].tolist())]
    return _table(f"What the cache of {theme.policy_style(run.policy).label} held · {badge}", columns, rows, "")


def victims_table(victims: Sequence[Victim], policy: str, run: CacheRun | None, reason: str, badge: str) -> dict[str, Any]:
    """Returns the next blocks to leave with the factors of their score and the policy's reason; blocks of one reason are one row."""
    groups = [list(own) for _, own in itertools.groupby(victims, key=lambda v: (v.request, v.kind, v.queue, v.sentence))][:MAX_GROUPS]
    names = list(dict.fromkeys(name for group in groups for name, _ in group[0].factors))
    columns = ["Leaves", "What it is", *(_factor_name(name) for name in names), "Why this one", "What happened"]
    later = _outcomes(run)
    rows = [
        [
            f"{place}. during request {group[0].request:,}",
            _what(group),
            *(_factor(group[0].factor(name)) for name in names),
            _sentence(group[0].sentence),
            later.get((group[0].request, group[0].block), NONE),
        ]
        for place, group in enumerate(groups, 1)
    ]
    note = "The smallest score leaves first. What happened is known afterwards; only MIN knows it before."
    return _table(f"Next to leave under {theme.policy_style(policy).label} · {badge}", columns, rows, reason, note)


def _outcomes(run: CacheRun | None) -> dict[tuple[int, int], str]:
    """Returns for each eviction of a run what came of it, in words."""
    if run is None:
        return {}
    log, found = run.evictions, {}
    rows = zip(log.request.tolist(), log.block.tolist(), log.suffered.tolist(), log.early_s.tolist(), log.regret.tolist(), strict=True)
    for request, block, suffered, early_s, regret in rows:
        back = "never asked for again" if suffered < 0 else f"asked for again {seconds(early_s)} later"
        found[request, block] = f"{back}; MIN still had it: regretted" if regret else back
    return found


def _what(group: Sequence[Victim]) -> str:
    deepest, first = group[0].depth, group[-1].depth
    blocks = f"block {deepest:,} of its prompt" if len(group) == 1 else f"{len(group):,} blocks, {first:,} to {deepest:,} of their prompt"
    hits = f"{group[0].hits:,} hit{'' if group[0].hits == 1 else 's'}"
    return f"{group[0].kind}, {group[0].queue} queue: {blocks}, {hits}"


def _factor(value: float | None) -> str:
    if value is None:
        return NONE
    return "never" if value > FAR else f"{value:.3g}"


def _sentence(reason: str) -> str:
    plain = reason.removeprefix("evicted: ")
    return plain[:1].upper() + plain[1:]


def _factor_name(name: str) -> str:
    known = {
        "alpha": "α queue",
        "w": "w type",
        "p": "p reuse",
        "idle_s": "idle, s",
        "hits_per_block_hour": "hits a block-hour",
        "horizon_s": "horizon, s",
        "next_hits_per_block_hour": "runner-up's",
        "next_use": "asked for at request",
    }
    return known.get(name, name.replace("_", " "))


def regret_data(info: RegretInfo | None) -> dict[str, Any] | None:
    """Returns what is shown when a bar of the strip is pressed; the worst bar first."""
    if info is None:
        return None
    bins = [{"label": bin_words(info, i), "cases": [_case(case) for case in cases]} for i, cases in enumerate(info.cases)]
    return {"bins": bins, "start": int(info.num_regretted.argmax())}


def _case(case: RegretCase) -> str:
    blocks = "1 block" if case.num_blocks == 1 else f"{case.num_blocks:,} blocks"
    them = "it" if case.num_blocks == 1 else "them"
    return (
        f"Request {case.suffered:,} suffered: {seconds(case.early_s)} before it came, request {case.request:,} had pushed out {blocks} "
        f"that it asked for ({case.kind}, {case.queue} queue, idle {seconds(case.idle_s)}). MIN still had {them}. "
        f"It found {case.suffered_hit_tokens:,} of its {case.suffered_prompt_tokens:,} tokens."
    )


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _badge(board: Board | None) -> str:
    return f" · {board.badge}" if board else ""


def _table(caption: str, columns: list[str], rows: list[list[str]], reason: str, note: str = "") -> dict[str, Any]:
    return {"caption": caption, "columns": columns, "rows": rows, "reason": reason, "note": note}
