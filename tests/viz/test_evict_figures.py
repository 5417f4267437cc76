"""Pictures of the Evict tab: infos hold the runs' numbers, empty ones say why, names stay text."""

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from evict_samples import BLOCK_TOKENS, CAPACITY, HOSTILE, made_run, made_set

from engine.cache_types import AgeHistogram
from engine.prefix import lab
from engine.replays import Replays
from engine.turns import Turns
from viz import theme
from viz.figures.evict_ages import evict_ages_figure, evict_ages_info, evict_ages_words
from viz.figures.evict_capacity import capacity_points, evict_capacity_figure, evict_capacity_info, evict_capacity_words
from viz.figures.evict_hit_rate import evict_hit_rate_figure, evict_hit_rate_info, evict_hit_rate_words
from viz.figures.evict_hit_time import evict_hit_time_figure, evict_hit_time_info, evict_hit_time_words, rate_range
from viz.figures.evict_kinds import evict_kinds_figure, evict_kinds_info, evict_kinds_words
from viz.figures.evict_misses import ORDER, evict_misses_figure, evict_misses_info, evict_misses_words
from viz.figures.evict_occupancy import evict_occupancy_figure, evict_occupancy_info, evict_occupancy_words
from viz.figures.evict_regret import evict_regret_figure, evict_regret_info, evict_regret_words
from viz.figures.evict_scores import gap_closed, points
from viz.figures.evict_weights import evict_weights_figure, evict_weights_info, evict_weights_words

RUNS = made_set()
LRU, SAE, SAE_G, MIN = RUNS
FIGURES = {
    "rate": (evict_hit_rate_figure, lambda run: evict_hit_rate_info((run,)), evict_hit_rate_words),
    "time": (evict_hit_time_figure, lambda run: evict_hit_time_info((run,)), evict_hit_time_words),
    "misses": (evict_misses_figure, lambda run: evict_misses_info((run,)), evict_misses_words),
    "curve": (evict_capacity_figure, lambda run: evict_capacity_info(capacity_points((run, replace(run, capacity_blocks=80)))), None),
    "occupancy": (evict_occupancy_figure, evict_occupancy_info, evict_occupancy_words),
    "kinds": (evict_kinds_figure, evict_kinds_info, evict_kinds_words),
    "weights": (evict_weights_figure, evict_weights_info, evict_weights_words),
    "regret": (evict_regret_figure, evict_regret_info, evict_regret_words),
    "ages": (evict_ages_figure, evict_ages_info, evict_ages_words),
}


def strings(value):
    """Returns every text in a figure's plain form."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    return [text for item in value for text in strings(item)] if isinstance(value, list | tuple) else []


@pytest.fixture(scope="module")
def real_runs():
    """Real replays of two policies, for laws that made-up numbers cannot show."""
    job = [lab.ReplayRequest("tool_use", name, 0.1) for name in ("lru", "saecache", "min")]
    return Replays(Turns()).run(job)


def test_rates_are_the_runs_own_best_first_under_the_limit():
    info = evict_hit_rate_info(RUNS)
    assert [row.policy for row in info.rows] == ["min", "sae_g", "saecache", "lru"]
    assert [row.rate.mean for row in info.rows] == [run.second_half.hit_tokens for run in (MIN, SAE_G, SAE, LRU)]
    assert info.row("sae_g").gap == pytest.approx((6 - 3) / (8 - 3)) and info.row("saecache").gap == pytest.approx(0.2)
    blocks = evict_hit_rate_info(RUNS, "blocks")
    assert blocks.row("saecache").rate.mean == 0.4


def test_a_policy_below_lru_closes_a_negative_share_and_says_so():
    info = evict_hit_rate_info((LRU, made_run("saecache", 2), MIN))
    assert info.row("saecache").gap == pytest.approx(-0.2)
    texts = " ".join(a.text for a in evict_hit_rate_figure(info).layout.annotations)
    assert "closes −20 %" in texts and points(-0.0976) in texts


def test_seeds_become_a_mean_with_its_range():
    info = evict_hit_rate_info((LRU, made_run("saecache", 4), made_run("saecache", 6, seed=1), made_run("lru", 3, seed=1)))
    rate = info.row("saecache").rate
    assert (rate.n, rate.lo, rate.hi) == (2, 4 * BLOCK_TOKENS / 164, 6 * BLOCK_TOKENS / 164)
    assert rate.mean == pytest.approx((rate.lo + rate.hi) / 2)


def test_the_gap_is_the_benchmarks(real_runs):
    lru, sae, best = real_runs
    assert gap_closed(sae, lru) == lab.gap_closed(sae, lru) and gap_closed(best, lru) == 1.0
    assert gap_closed(replace(sae, limit_hit_blocks=None), lru) is None and gap_closed(sae, None) is None


@pytest.mark.parametrize("unit", ["tokens", "blocks"])
def test_windows_add_up_to_the_whole(real_runs, unit):
    info = evict_hit_time_info(real_runs, unit)
    edges = np.concatenate([[0], info.ends])
    for name, rates in zip(info.policies, info.rates, strict=True):
        run = next(run for run in real_runs if run.policy == name)
        asked = getattr(run.requests, f"prompt_{unit}")
        total = sum(rate * asked[a:b].sum() for rate, a, b in zip(rates, edges[:-1], edges[1:], strict=True))
        assert total == pytest.approx(int(getattr(run.requests, f"hit_{unit}").sum()))


def test_an_axis_of_rates_begins_at_zero_unless_all_are_high():
    assert rate_range(np.array([0.1, 0.6])) == (0.0, pytest.approx(0.64))
    assert rate_range(np.array([0.9, 0.98])) == (pytest.approx(0.8936), pytest.approx(0.9864))
    assert rate_range(np.array([1.0, 1.0])) == (0.95, 1.0) and rate_range(np.zeros(2)) == (0.0, 0.05)


def test_queues_and_free_space_fill_the_capacity_at_every_moment(real_runs):
    for run in (*real_runs, SAE):
        bands = evict_occupancy_info(run).bands
        assert (bands.counts.sum(axis=1) == run.capacity_blocks).all() and (bands.counts >= 0).all()
    info = evict_occupancy_info(SAE)
    assert info.has_queues and info.bands.names[-1] == "free" and info.bands.counts[0, -1] == CAPACITY - 10
    assert "full after request 3" in evict_occupancy_words(info) and "chat 25" in evict_occupancy_words(info)


def test_a_policy_without_queues_is_one_band_and_says_so(real_runs):
    info = evict_occupancy_info(real_runs[0])
    assert not info.has_queues and info.bands.names == ("blocks", "free")
    assert "no queues" in evict_occupancy_figure(info).layout.title.text


def test_the_capacity_curve_keeps_seeds_together_and_knows_where_a_policy_is_behind():
    runs = [
        made_run(name, hits, seed, capacity) for name, hits in (("lru", 4), ("saecache", 3)) for seed in (0, 1) for capacity in (40, 80)
    ]
    info = evict_capacity_info(capacity_points(runs), 0.1)
    assert [len(curve) for curve in info.curves] == [2, 2] and info.curves[0][0].rate.n == 2
    assert info.behind("saecache") == (0.1, 0.2) and info.behind("lru") == ()
    assert "−9.8 points at 10 %" in evict_capacity_words(info)
    assert evict_capacity_info(capacity_points([LRU, SAE])) is None


def test_weights_stand_in_groups_by_what_they_weigh():
    info = evict_weights_info(SAE)
    assert [panel.names for panel in info.panels] == [("chat", "agent"), ("system",), ("",)]
    assert info.panels[0].values[-1].tolist() == [2.0, 0.25]
    assert "chat 1 → 2, agent 1 → 0.25" in evict_weights_words(info)
    figure = evict_weights_figure(info)
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1] and len(figure.data) == 4


def test_regret_counts_every_eviction_once_and_names_who_suffered():
    info = evict_regret_info(SAE)
    assert info.num_evicted.sum() == len(SAE.evictions.block) == 18 and info.num_regretted.sum() == SAE.evictions.regret.sum() == 5
    case = info.cases[2][0]
    assert (case.request, case.suffered, case.num_blocks, case.early_s) == (2, 3, 1, 10.0)
    assert (case.suffered_hit_tokens, case.suffered_prompt_tokens) == (64, 164)
    assert evict_regret_figure(info).data[0].customdata.tolist() == list(range(8))
    assert evict_regret_words(info).startswith("5 of 18 evictions (28 %)")


def test_regret_cases_are_rows_of_the_log(real_runs):
    run = real_runs[1]
    log = run.evictions
    pairs = set(zip(log.request[log.regret].tolist(), log.suffered[log.regret].tolist(), strict=True))
    cases = [case for own in evict_regret_info(run).cases for case in own]
    assert cases and {(case.request, case.suffered) for case in cases} <= pairs
    worst = max(cases, key=lambda case: case.num_blocks)
    assert worst.num_blocks == int((log.regret & (log.request == worst.request) & (log.suffered == worst.suffered)).sum())


def test_hits_and_misses_are_all_prompt_tokens(real_runs):
    for row, run in zip(evict_misses_info(RUNS).rows, sorted(RUNS, key=lambda r: list(theme.POLICIES).index(r.policy)), strict=True):
        assert row.total == int(run.requests.prompt_tokens[4:].sum()) and sum(row.share(name) for name in ORDER) == pytest.approx(1)
    row = evict_misses_info((SAE,)).rows[0]
    assert dict(zip(ORDER, row.num_tokens, strict=True)) == {
        "hit": 256,
        "evicted": 320,
        "changed prefix": 0,
        "cold": 64,
        "shorter than a block": 16,
    }


def test_ages_overlap_wholly_or_not_at_all():
    assert evict_ages_info(SAE).overlap == pytest.approx(0.1 + 0.3 + 0.1)
    same = replace(SAE, ages=AgeHistogram(np.array([1.0, 10.0]), np.array([3, 1]), np.array([6, 2])))
    apart = replace(SAE, ages=AgeHistogram(np.array([1.0, 10.0]), np.array([3, 0]), np.array([0, 2])))
    assert evict_ages_info(same).overlap == 1.0 and evict_ages_info(apart).overlap == 0.0
    assert "within 1.0 s of the last use" in evict_ages_words(evict_ages_info(SAE))


def test_what_is_missing_makes_a_titled_empty_figure():
    none = np.zeros(0, np.int32)
    nothing_left = replace(SAE.evictions, **{name: getattr(SAE.evictions, name)[:0] for name in SAE.evictions.__dataclass_fields__})
    bare = replace(
        SAE,
        evictions=nothing_left,
        snapshots=replace(
            SAE.snapshots,
            request=none,
            queues=np.zeros((0, 4), np.int32),
            kinds=np.zeros((0, 5), np.int32),
            weights=np.zeros((0, 4), np.float32),
        ),
        ages=AgeHistogram(np.array([1.0]), np.array([0]), np.array([0])),
    )
    for name in ("occupancy", "kinds", "weights", "regret", "ages"):
        draw, inform, say = FIGURES[name]
        assert inform(bare) is None and say(None) == ""
        figure = draw(None)
        assert not figure.data and figure.layout.title.text and figure.layout.annotations[0].text
    for draw in (evict_hit_rate_figure, evict_hit_time_figure, evict_misses_figure, evict_capacity_figure):
        assert not draw(None).data


@pytest.mark.parametrize("name", FIGURES)
def test_a_hostile_policy_name_stays_text(name):
    draw, inform, _ = FIGURES[name]
    run = replace(SAE, policy=HOSTILE, snapshots=replace(SAE.snapshots, weight_names=(HOSTILE, "w x", "w y", "gamma")))
    texts = strings(draw(inform(run)).to_plotly_json())
    assert any("&lt;" in text for text in texts)
    assert not [text for text in texts if "<img" in text or "<script" in text or "${" in text]


@pytest.mark.parametrize("name", FIGURES)
def test_every_picture_draws_and_is_light(name, real_runs):
    draw, inform, _ = FIGURES[name]
    figure = draw(inform(real_runs[1]))
    assert isinstance(figure, go.Figure) and figure.data and len(figure.to_json()) < 200_000


def test_no_two_listed_policies_look_alike():
    looks = [(style.color, style.symbol) for style in theme.POLICIES.values()]
    lines = [(style.color, style.dash) for style in theme.POLICIES.values()]
    assert len(set(looks)) == len(looks) and len(set(lines)) == len(lines)
    assert theme.policy_style("saecache_types").label == "SAECache, types"
    for bands in (theme.QUEUES, theme.KINDS, theme.MISSES):
        shown = [(band.color, band.hatch) for key, band in bands.items() if key != "blocks"]
        assert len(set(shown)) == len(shown)
