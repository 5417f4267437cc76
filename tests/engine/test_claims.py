"""Verdicts on published claims: each rule, each way, and never from what a file says."""

import inspect
from dataclasses import replace

import pytest
from fake_runs import example_request, fake_run
from results_samples import SET_SIZE, sample_results

from engine.claims import RULES, Claim, Evidence, LayerTable, judge, load_claims
from engine.claims.shipped import layer_tables
from engine.claims.verdicts import Gain, keeps, reaches, worst
from engine.results import Difference, EqualQuality, MedianInterval

SET = sample_results()


def judged(rule: str, *sets, runs=(), tables=(), **params):
    claim = Claim("Some claim.", "2×", "elsewhere", "a paper", rule, params)
    return judge(claim, Evidence(tuple(sets), tuple(runs), tuple(tables)))


def with_difference(method: str, versus: str, metric: str, mean: float, half: float, ratio: float | None = 0.3):
    """Returns the set with one paired difference set to a value."""
    row = SET.row(versus, ratio)
    new = Difference(method, ratio, versus, row.ratio, metric, mean, mean - half, mean + half, 60)
    kept = tuple(d for d in SET.comparisons if (d.method, d.versus, d.metric) != (method, versus, metric) or d.ratio != ratio)
    return replace(SET, comparisons=(*kept, new))


def with_row(method: str, ratio: float, **changes):
    return replace(SET, rows=tuple(replace(r, **changes) if (r.method, r.ratio) == (method, ratio) else r for r in SET.rows))


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        (Gain(0.03, 0.01, 0.05), "reproduced"),
        (Gain(0.03, -0.01, 0.07), "undecided"),
        (Gain(0.015, 0.005, 0.03), "undecided"),
        (Gain(0.01, 0.005, 0.015), "not reproduced"),
        (Gain(-0.05, -0.08, -0.02), "not reproduced"),
    ],
)
def test_a_claimed_gain_of_two_points(gain, verdict):
    assert reaches(gain, 0.02) == verdict


def test_no_worse_needs_a_loss_excluded():
    assert keeps(Gain(0.0, -0.005, 0.005), 0.01) == "reproduced"
    assert keeps(Gain(0.0, -0.03, 0.03), 0.01) == "undecided"
    assert keeps(Gain(-0.05, -0.08, -0.02), 0.01) == "not reproduced"
    assert worst(["reproduced", "undecided"]) == "undecided" and worst(["undecided", "not reproduced"]) == "not reproduced"


def test_every_claim_names_a_rule_and_fits_it():
    groups = load_claims()
    claims = [claim for group in groups for claim in group.claims]
    assert len(groups) >= 4 and len(claims) >= 30
    for claim in claims:
        inspect.signature(RULES[claim.rule]).bind(Evidence(), **claim.params)
        assert claim.command.startswith("python -m engine.") or claim.rule == "not_testable", claim.claim
        assert not {"verdict", "reproduced"} & set(claim.params)


def test_without_evidence_nothing_is_reproduced():
    verdicts = {judge(claim, Evidence()).verdict for group in load_claims() for claim in group.claims}
    assert verdicts == {"not measured yet", "not testable here"}


def test_speedup_at_quality():
    params = {"method": "qcfuse", "metric": "rouge_l", "margin": 0.01, "at_least": 2.0}
    equal = with_difference("qcfuse", "full", "rouge_l", 0.0, 0.004)
    found = judged("speedup_at_quality", equal, **params)
    assert found.verdict == "reproduced" and found.findings[0].figure.startswith("2.38× [")
    assert judged("speedup_at_quality", SET, **params).verdict == "not reproduced"
    unclear = with_difference("qcfuse", "full", "rouge_l", -0.02, 0.05)
    assert judged("speedup_at_quality", unclear, **params).verdict == "undecided"
    slow = with_difference("qcfuse", "full", "rouge_l", 0.0, 0.004, ratio=0.5)
    assert judged("speedup_at_quality", slow, **params).verdict == "not reproduced"


def test_a_relative_margin_is_a_share_of_full_prefill():
    params = {"method": "qcfuse", "metric": "gold_nll", "margin": 0.1, "at_least": 1.2}
    found = with_difference("qcfuse", "full", "gold_nll", 0.15, 0.01)
    assert judged("speedup_at_quality", found, relative=True, **params).verdict == "reproduced"
    assert judged("speedup_at_quality", found, **params).verdict != "reproduced"


def test_speedup_at_a_ratio_needs_speed_and_quality():
    params = {"method": "qcfuse", "ratio": 0.3}
    assert judged("speedup", SET, at_least=2.0, **params).verdict == "reproduced"
    assert judged("speedup", SET, at_least=3.0, **params).verdict == "not reproduced"
    wide = with_row("qcfuse", 0.3, speedup=MedianInterval(2.4, 1.0, 4.0))
    assert judged("speedup", wide, at_least=2.0, **params).verdict == "undecided"
    worse = with_difference("qcfuse", "full", "rouge_l", -0.1, 0.01)
    assert judged("speedup", worse, at_least=2.0, metric="rouge_l", margin=0.01, **params).verdict == "not reproduced"


def test_better_than_reads_a_difference_whichever_way_the_file_has_it():
    better = with_difference("qcfuse", "cacheblend", "rouge_l", 0.04, 0.01)
    params = {"versus": "cacheblend", "metric": "rouge_l", "ratio": 0.3, "at_least": 0.03}
    assert judged("better_than", better, method="qcfuse", **params).verdict == "reproduced"
    assert judged("better_than", better, method="qcfuse", **params).findings[0].figure == "+4.0 points [+3.0, +5.0]"
    other_way = {**params, "versus": "qcfuse"}
    assert judged("better_than", better, method="cacheblend", **other_way).findings[0].figure == "−4.0 points [−5.0, −3.0]"
    lower = with_difference("qcfuse", "cacheblend", "gold_nll", -0.5, 0.1)
    assert judged("better_than", lower, method="qcfuse", **{**params, "metric": "gold_nll"}).verdict == "reproduced"


def test_no_worse():
    params = {"method": "qcfuse", "versus": "full", "metric": "rouge_l", "ratio": 0.3, "margin": 0.01}
    assert judged("no_worse", with_difference("qcfuse", "full", "rouge_l", 0.01, 0.01), **params).verdict == "reproduced"
    assert judged("no_worse", SET, **params).verdict == "not reproduced"
    assert judged("no_worse", SET, **{**params, "ratio": 0.4}).verdict == "not measured yet"


def test_faster_at_equal_quality_must_hold_against_each_rival():
    names = {"cacheblend": "CacheBlend", "kvshare": "KVShare"}
    params = {"method": "qcfuse", "versus_ratio": 0.3, "saves": 0.4}
    assert judged("faster_at_equal_quality", SET, versus=names, **params).verdict == "not reproduced"
    alone = judged("faster_at_equal_quality", SET, versus={"kvshare": "KVShare"}, **params)
    assert alone.verdict == "reproduced" and alone.findings[0].figure == "KVShare +45 % [+38, +51]"
    never = EqualQuality("qcfuse", "epic", 0.3, 0.1, None, 60, False)
    other = replace(SET, latency_at_equal_quality=(never,))
    assert judged("faster_at_equal_quality", other, versus={"epic": "EPIC"}, **params).verdict == "not reproduced"


def test_faster_at_the_same_ratio():
    found = replace(SET, comparisons=(Difference("qcfuse", 0.3, "qcall", 0.3, "ttft_ratio", 0.7, 0.65, 0.75, 60),))
    params = {"method": "qcfuse", "versus": "qcall", "ratio": 0.3}
    assert judged("faster_at_same_ratio", found, saves=0.26, **params).verdict == "reproduced"
    assert judged("faster_at_same_ratio", found, saves=0.5, **params).verdict == "not reproduced"


def test_selection_share_and_first_use():
    parts = {"probe": 0.3, "select": 0.1, "load_wait": 0.0, "recompute": 0.6, "head": 0.0}
    found = with_row("qcfuse", 0.3, parts_s=parts)
    assert judged("selection_share", found, method="qcfuse", ratio=0.3, at_most=0.25).verdict == "not reproduced"
    assert judged("selection_share", found, method="qcfuse", ratio=0.3, at_least=0.34).findings[0].figure == "40 %"
    assert judged("first_use_costs", SET, method="qcfuse", ratio=0.3).verdict == "reproduced"
    cheap = replace(SET, costs=(replace(SET.costs[0], build_s=replace(SET.costs[0].build_s, median=0.1)),))
    assert judged("first_use_costs", cheap, method="qcfuse", ratio=0.3).verdict == "not reproduced"


def test_attention_of_recorded_runs():
    run = fake_run(example_request())
    found = judged("attention_held", runs=[run, run], tokens=0.01, at_least=0.65)
    assert found.verdict == "not reproduced" and found.findings[0].basis.n == 2
    assert judged("attention_held", runs=[run, run], tokens=1.0, at_least=0.65).verdict == "reproduced"


def test_layers_of_a_calibration():
    table = LayerTable((1, 20, 29), (0.1, 0.42, 0.2), (0.01, 0.02, 0.01), "tiny", 46, "2026-11-30")
    assert judged("best_layer_recall", tables=[table], at_least=0.37).verdict == "reproduced"
    assert judged("best_layer_recall", tables=[table], at_least=0.6).verdict == "not reproduced"
    assert judged("best_layer_over_last", tables=[table], at_least=0.1).verdict == "reproduced"
    noisy = replace(table, recall_se=(0.2, 0.2, 0.2))
    assert judged("best_layer_over_last", tables=[noisy], at_least=0.1).verdict == "undecided"
    assert [one.model for one in layer_tables()] == ["SmolLM2-135M-Instruct"]


def test_the_set_with_the_most_samples_speaks_and_the_data_can_be_asked_for():
    small, large = sample_results("hotpotqa", 12), sample_results("two-hop", SET_SIZE)
    params = {"method": "qcfuse", "versus": "full", "metric": "rouge_l", "ratio": 0.3, "margin": 0.01}
    found = judged("no_worse", small, large, **params)
    assert [f.basis.n for f in found.findings] == [SET_SIZE, 12]
    only = judged("no_worse", small, large, data="hotpot", **params)
    assert [f.basis.data for f in only.findings] == ["hotpotqa"]


def test_a_finding_says_where_it_comes_from():
    basis = judged("speedup", SET, method="qcfuse", ratio=0.3, at_least=2.0).findings[0].basis
    assert (basis.data, basis.n, basis.model, basis.created) == ("two-hop", 60, "SmolLM2-135M-Instruct", "2026-11-30")
    assert basis.hardware == "Test CPU @ 2.50GHz, 2 threads" and basis.command.startswith("python -m engine.bench fuse")
    assert judged("not_testable", why="No such machine.").findings[0].why == "No such machine."
