"""What the Evict tab shows: the runs of one setting, rates at other capacities, and where they come from. Knows nothing of Gradio."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from engine.cache_types import CacheRun, EvictionLog
from engine.replays import CurveRow
from viz import theme
from viz.figures.evict_capacity import CapacityInfo, CapacityPoint, capacity_points, evict_capacity_info, share_of
from viz.figures.evict_hit_rate import HitRow, evict_hit_rate_info
from viz.figures.evict_live import paired_ratio
from viz.figures.evict_scores import FLOOR, LIMIT, Spread, by_policy, hit_rate, points, rate_words
from viz.figures.words import seconds
from viz.panels.evict_form import LOSING_WORKLOAD, WORKLOADS, Job

Origin = Literal["recorded", "replayed", "file"]
BADGES = {"simulated": "SIMULATED", "live": "LIVE", "replay": "REPLAY"}
# Differences of rates below this are called none.
LEAST = 0.0005


@dataclass(frozen=True, eq=False, slots=True)
class Board:
    """Args:
    runs: of every policy and seed; those of later seeds hold no evictions (see `slim`).
    points: rates by policy and capacity, kept while the workload stays.
    job: what the runs were asked for with, None where they are from files.
    """

    runs: tuple[CacheRun, ...]
    points: tuple[CapacityPoint, ...]
    origin: Origin
    job: Job | None = None

    @property
    def first(self) -> CacheRun:
        """Returns one run, for what all of them share."""
        return self.runs[0]

    @property
    def policies(self) -> tuple[str, ...]:
        """Returns the policies in reading order."""
        return tuple(by_policy(self.runs))

    def run(self, policy: str | None) -> CacheRun:
        """Returns the first seed's run of a policy, of the one to begin with where it has none."""
        own = by_policy(self.runs)
        return own[policy if policy in own else first_policy(tuple(own))][0]

    @property
    def badge(self) -> str:
        """Returns SIMULATED, LIVE, or REPLAY for a live run that was recorded."""
        return BADGES[self.kind]

    @property
    def kind(self) -> str:
        """Returns the badge's kind."""
        live = all(run.mode == "live" for run in self.runs)
        return "simulated" if not live else ("live" if self.origin == "replayed" else "replay")

    @property
    def curve(self) -> CapacityInfo | None:
        """Returns the rates by capacity."""
        return evict_capacity_info(self.points, share_of(self.first))


def first_policy(policies: tuple[str, ...]) -> str:
    """Returns the policy to look at first: the paper's where it is there."""
    return next((name for name in ("saecache", "sae_g") if name in policies), policies[0])


def slim(run: CacheRun) -> CacheRun:
    """Returns a run without its evictions: enough for rates, a fraction of the memory."""
    log = run.evictions
    return replace(run, evictions=EvictionLog(*(getattr(log, name)[:0] for name in log.__dataclass_fields__)))


def joined(old: Iterable[CapacityPoint], new: Iterable[CapacityPoint]) -> tuple[CapacityPoint, ...]:
    """Returns all points; of two for the same policy and capacity the one of more seeds, the newer one where they tie."""
    kept: dict[tuple[str, float], CapacityPoint] = {}
    for point in (*old, *new):
        key = (point.policy, point.share)
        if key not in kept or point.rate.n >= kept[key].rate.n:
            kept[key] = point
    return tuple(kept.values())


def recorded_points(rows: Iterable[CurveRow]) -> tuple[CapacityPoint, ...]:
    """Returns the points of recorded rates."""
    rates = ((row, row.hit_tokens_second_half) for row in rows)
    return tuple(CapacityPoint(row.policy, row.capacity, row.capacity_blocks, Spread(r.mean, r.lo, r.hi, row.n)) for row, r in rates)


def board_of(runs: tuple[CacheRun, ...], origin: Origin, job: Job | None = None, before: Iterable[CapacityPoint] = ()) -> Board:
    """Returns the board of runs of one workload; `before` are points of the same workload."""
    return Board(runs, joined(before, capacity_points(runs)), origin, job)


def workload_label(name: str) -> str:
    """Returns how a workload is called in a sentence."""
    return WORKLOADS.get(name, name).split(" (")[0]


def headline(board: Board) -> str:
    """Returns who wins, by how much over LRU and how near to MIN, and how SAECache does."""
    rows = {row.policy: row for row in evict_hit_rate_info(board.runs).rows}
    rivals = [row for name, row in rows.items() if name != LIMIT]
    floor = rows.get(FLOOR)
    if floor is None or len(rivals) < 2:
        row = next(iter(rivals or rows.values()))
        return f"{theme.policy_style(row.policy).label} finds {rate_words(row.rate.mean)} of the prompt tokens in the cache."
    if not any(len(run.evictions.block) for run in board.runs):
        return "Everything fits: nothing was evicted, so every policy finds the same. Choose a smaller cache."
    best = max(rivals, key=lambda row: row.rate.mean)
    won = best.rate.mean - floor.rate.mean
    if won < LEAST:
        said = f"No policy beats LRU here: it finds {rate_words(floor.rate.mean)} of the prompt tokens in the cache."
    else:
        near = "" if best.gap is None else f", {100 * best.gap:.0f} % of the way to MIN"
        said = (
            f"{theme.policy_style(best.policy).label} wins: {rate_words(best.rate.mean)} of the prompt tokens come from the cache, "
            f"{points(won).lstrip('+')} more than under LRU{near}{_over_seeds(board, best.policy)}."
        )
    return " ".join(part for part in (said, _about_saecache(rows, best, floor), _about_time(board)) if part)


def _over_seeds(board: Board, policy: str) -> str:
    """Returns how far a policy's lead over LRU differs between seeds, of the board or else of what is known at its capacity."""
    own = {run.seed: hit_rate(run, "tokens") for run in board.runs if run.policy == policy}
    floor = {run.seed: hit_rate(run, "tokens") for run in board.runs if run.policy == FLOOR}
    leads = [own[seed] - floor[seed] for seed in own if seed in floor]
    if len(leads) > 1:
        return f" ({points(min(leads))} to {points(max(leads))} over {len(leads)} seeds)"
    share = share_of(board.first)
    known = {point.policy: point.rate for point in board.points if point.share == share and point.rate.n > 1}
    if policy not in known or FLOOR not in known:
        return " (one seed)"
    mean = known[policy].mean - known[FLOOR].mean
    return f" ({points(mean)} on average of {known[policy].n} seeds)"


def _about_time(board: Board) -> str:
    """Returns what a live run measured: mean times to first token, LRU's first; nothing for a replay."""
    runs = by_policy(board.runs)
    if board.kind == "simulated" or FLOOR not in runs:
        return ""
    floor = runs[FLOOR][0].requests.ttft_s.astype(float)
    said = []
    for name, (run, *_) in runs.items():
        if name not in (FLOOR, LIMIT) and run.num_requests == len(floor):
            ratio = paired_ratio(run.requests.ttft_s.astype(float), floor)
            unsure = ", no difference beyond chance" if ratio.lo <= 1 <= ratio.hi else ""
            said.append(
                f"{theme.policy_style(name).label} takes {ratio.value:.2f}× [{ratio.lo:.2f}, {ratio.hi:.2f}] LRU's "
                f"{seconds(float(floor.mean()))} to the first token{unsure}"
            )
    return f"Measured: {'; '.join(said)}." if said else ""


def _about_saecache(rows: dict[str, HitRow], best: HitRow, floor: HitRow) -> str:
    own = rows.get("saecache")
    if own is None or own is best:
        return ""
    ahead = own.rate.mean - floor.rate.mean
    label = theme.policy_style("saecache").label
    if ahead < -LEAST:
        return f"{label} loses to LRU by {abs(100 * ahead):.1f} points."
    if ahead < LEAST:
        return f"{label} is no better than LRU."
    aside = (LIMIT, FLOOR, "saecache", best.policy)
    beaten = [row for name, row in rows.items() if name not in aside and row.rate.mean > own.rate.mean + LEAST]
    more = f", behind {', '.join(theme.policy_style(row.policy).label for row in beaten)}" if beaten else ""
    return f"{label} gains {100 * ahead:.1f} points{more}."


def losses(board: Board) -> str:
    """Returns where SAECache finds less than LRU, of the capacities known for this load, and how sure that is."""
    info = board.curve
    if info is None or not any(curve[0].policy == "saecache" for curve in info.curves):
        return ""
    behind = info.behind("saecache")
    if behind:
        return f"Where SAECache loses: with room for {_shares(behind)} of this load's blocks it finds less than LRU."
    hint = "" if board.first.workload == LOSING_WORKLOAD else f" It does on “{workload_label(LOSING_WORKLOAD)}”: choose that load."
    return f"At none of the capacities replayed on this load does SAECache find less than LRU.{hint}"


def _shares(shares: tuple[float, ...]) -> str:
    said = [f"{100 * share:g} %" for share in shares]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"


def notices(board: Board) -> list[str]:
    """Returns what a visitor must know to read the numbers."""
    run, found = board.first, []
    asked = run.requests.prompt_blocks
    too_long, smallest = int((asked > run.capacity_blocks).sum()), int(asked.min())
    if smallest > run.capacity_blocks:
        size = f"{run.capacity_blocks:,} block{'' if run.capacity_blocks == 1 else 's'}"
        found.append(f"The cache of {size} is smaller than the smallest prompt ({smallest:,} blocks); give it more room.")
    elif too_long:
        found.append(f"{too_long:,} of {run.num_requests:,} prompts are longer than the cache; only their first blocks are cached.")
    if len({(run.workload, run.capacity_blocks, run.block_tokens) for run in board.runs if run.seed == board.first.seed}) > 1:
        found.append("The files are of different loads or capacities; their rates must not be compared.")
    return found


def details(board: Board) -> str:
    """Returns the setting in short."""
    run, seeds = board.first, len({run.seed for run in board.runs})
    now = "served just now" if board.kind == "live" else "replayed just now"
    when = {"recorded": f"recorded {run.created[:10]}", "file": f"from a file of {run.created[:10]}", "replayed": now}
    parts = (
        when[board.origin],
        workload_label(run.workload),
        f"{run.num_requests:,} requests",
        f"cache of {run.capacity_blocks:,} blocks of {run.block_tokens} tokens, {100 * run.capacity_blocks / run.num_blocks:.2g} % of all",
        f"{seeds} seeds" if seeds > 1 else f"seed {run.seed}",
    )
    return " · ".join(parts)


def how_measured(board: Board) -> str:
    """Returns what the numbers mean and where they come from."""
    run = board.first
    kind = "Simulated: requests take no time and no model runs." if run.mode == "simulated" else "Live: a model served every request."
    return (
        f"{kind} Rates are of the second half of the requests, when the cache is warm; a hit is the longest cached prefix of a prompt. "
        f"MIN evicts what is asked for last, which it knows from the future. Predictor of who comes back: {run.predictor}. "
        f"Time to first token by {run.cost}. {' '.join(run.notes)} Made {run.created}, commit {run.commit}."
    )
