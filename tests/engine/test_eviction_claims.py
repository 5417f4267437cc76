"""Claims about eviction: each rule each way, on made-up results and on what the benchmarks themselves write."""

import json

import msgspec
import pytest

from engine.bench.__main__ import main
from engine.claims import Claim, Evidence, judge, load_claims
from engine.claims.eviction_rules import paired
from engine.claims.evictions import (
    EVICT_FORMAT,
    EvictionRow,
    EvictionSet,
    LiveRow,
    LiveSet,
    LiveSource,
    Mean,
    PredictorFigures,
    ScalingRow,
    eviction_sets,
    live_sets,
    predictor_figures,
)
from engine.session import Session
from engine.settings import Settings


def row(policy, hits, workload="mix", capacity=0.05, predictor="0.77", ttft=1.0, gap=None):
    values = tuple(hits if isinstance(hits, list | tuple) else [hits] * 3)
    times = tuple(ttft if isinstance(ttft, list | tuple) else [ttft] * len(values))
    by_seed = {"hit_tokens_second_half": values, "modelled_ttft_s": times}
    return EvictionRow(
        workload, capacity, policy, predictor, len(values), by_seed, None if gap is None else Mean(gap, gap - 0.02, gap + 0.02)
    )


def results(*rows, scaling=()):
    return EvictionSet(tuple(rows), "python -m engine.bench evict --json", "2026-11-30 12:00 UTC", "abc", "8b-a100", tuple(scaling))


def judged(rule, *sets, lives=(), predictors=(), **params):
    return judge(Claim("A claim.", "x", "y", "z", rule, params), Evidence(evictions=sets, lives=lives, predictors=predictors))


def test_an_interval_over_seeds_is_students():
    gain = paired([0.02, 0.03, 0.04])
    assert gain.value == pytest.approx(0.03) and gain.hi - gain.value == pytest.approx(4.303 * 0.01 / 3**0.5)
    assert paired([0.02]) == (0.02, 0.02, 0.02)


def test_hits_are_held_against_the_better_rival():
    rivals = {"policy": "saecache", "rivals": ["lru", "lpc"], "at_least": 0.048}
    rows = [row("lru", 0.40), row("lpc", 0.45)]
    assert judged("hits_over_rivals", results(*rows, row("saecache", 0.50)), **rivals).verdict == "reproduced"
    found = judged("hits_over_rivals", results(*rows, row("saecache", 0.46)), **rivals)
    assert found.verdict == "not reproduced" and found.findings[0].figure == "+1.0 points [+1.0, +1.0]"
    wide = judged("hits_over_rivals", results(*rows, row("saecache", [0.44, 0.50, 0.60])), **rivals)
    assert wide.verdict == "undecided"
    assert judged("hits_over_rivals", results(row("lru", 0.4), row("saecache", 0.5)), **rivals).verdict == "not measured yet"
    assert judged("hits_over_rivals", results(*rows, row("saecache", 0.5)), workloads=["other"], **rivals).verdict == "not measured yet"


def test_every_cell_must_hold_and_each_predictor_and_load_is_told():
    cells = [(w, p) for w in ("a", "b") for p in ("0.77", "oracle")]
    rows = [row("lru", 0.40, w, predictor=p) for w, p in cells] + [row("lpc", 0.41, w, predictor=p) for w, p in cells]
    own = {("a", "0.77"): 0.50, ("b", "0.77"): 0.40, ("a", "oracle"): 0.50, ("b", "oracle"): 0.50}
    rows += [row("saecache", own[cell], cell[0], predictor=cell[1]) for cell in cells]
    found = judged("hits_over_rivals", results(*rows), policy="saecache", rivals=["lru", "lpc"], at_least=0.048).findings
    told = [(finding.basis.data, finding.verdict) for finding in found]
    assert told == [
        ("2 loads", "not reproduced"),
        ("2 loads", "reproduced"),
        ("a", "reproduced"),
        ("b", "not reproduced"),
        ("a", "reproduced"),
        ("b", "reproduced"),
    ]
    assert "holds in 1 of 2 cells of load and capacity, 3 seeds. Predictor: right in 77 % of all cases." in found[0].why
    assert found[0].figure == "b at 5 %: −1.0 points [−1.0, −1.0] … a at 5 %: +9.0 points [+9.0, +9.0]"


def test_time_saved_against_another_policy():
    fast = results(row("lru", 0.4, ttft=[1.0, 2.0, 4.0]), row("saecache", 0.4, ttft=[0.8, 1.6, 3.2]))
    even = results(row("lru", 0.4, ttft=1.0), row("saecache", 0.4, ttft=1.02))
    params = {"policy": "saecache", "versus": "lru"}
    assert judged("saves_time", fast, saves=0.2 - 1e-9, **params).findings[0].figure == "+20 % [+20, +20]"
    assert judged("saves_time", fast, saves=0.3, **params).verdict == "not reproduced"
    assert judged("saves_time", even, saves=-0.05, **params).verdict == "reproduced"
    assert judged("saves_time", even, saves=-0.01, **params).verdict == "not reproduced"


def test_never_below_and_the_gap():
    base = [row("lru", 0.40), row("lru", 0.60, capacity=0.1)]
    good, bad = (
        [*base, row("sae_g", 0.45, gap=0.3), row("sae_g", hits, capacity=0.1, gap=gap)] for hits, gap in ((0.599, 0.4), (0.55, 0.1))
    )
    params = {"policy": "sae_g", "versus": "lru", "margin": 0.002}
    assert judged("never_below", results(*good), **params).verdict == "reproduced"
    assert judged("never_below", results(*bad), **params).verdict == "not reproduced"
    assert judged("closes_gap", results(*good), policy="sae_g", at_least=0.25).verdict == "reproduced"
    assert judged("closes_gap", results(*bad), policy="sae_g", at_least=0.25).verdict == "not reproduced"


def test_the_cost_of_an_eviction():
    flat, steep = (
        [ScalingRow("saecache", num, cost) for num, cost in pairs]
        for pairs in ([(1_000, 20.0), (100_000, 24.0)], [(1_000, 20.0), (100_000, 90.0)])
    )
    params = {"policy": "saecache", "at_most": 1.5}
    assert judged("eviction_cost_flat", results(scaling=flat), **params).verdict == "reproduced"
    assert judged("eviction_cost_flat", results(scaling=steep), **params).verdict == "not reproduced"
    assert judged("eviction_cost_flat", results(scaling=flat[:1]), **params).verdict == "not measured yet"


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [((0.9, 0.85, 0.95), "reproduced"), ((1.1, 1.05, 1.2), "not reproduced"), ((1.0, 0.9, 1.1), "undecided")],
)
def test_live_times(ratio, verdict):
    rows = (LiveRow("lru", 120, Mean(1, 1, 1), 0.40), LiveRow("saecache", 120, Mean(*ratio), 0.42, Mean(0.97, 0.95, 0.99), 9))
    live = LiveSet(rows, "python -m engine.bench live --json", LiveSource("tiny", "Test CPU", 2, "2026-11-30 12:00 UTC"))
    found = judged("live_saves_time", lives=[live], policy="saecache")
    assert "the 9 requests for which they differ: 0.970× [0.950, 0.990]" in found.findings[0].why
    assert found.verdict == verdict and found.findings[0].basis.hardware == "Test CPU, 2 threads"
    assert judged("live_saves_time", lives=[live], policy="sae_g").verdict == "not measured yet"


def test_the_predictors_card():
    card = PredictorFigures("tiny", "talks", (600, 200, 400), 0.82, 0.8, 0.5, 0.6, 2_000.0, "2026-11-30")
    weak = msgspec.structs.replace(card, accuracy=0.62, baseline_accuracy=0.6, predictions_per_s=10.0)
    assert judged("predictor_accuracy", predictors=[card], at_least=0.771).verdict == "reproduced"
    assert judged("predictor_accuracy", predictors=[weak], at_least=0.771).verdict == "not reproduced"
    assert judged("predictor_speed", predictors=[card], at_least=1137).verdict == "reproduced"
    assert judged("predictor_speed", predictors=[weak], at_least=1137).verdict == "not reproduced"


def test_the_rules_read_what_the_benchmark_writes(tmp_path, capsys):
    call = ["evict", "--workload", "tool_use", "--policies", "lru,lpc,saecache", "--capacity", "0.1", "--seeds", "2"]
    call += ["--predictor", "0.77,rule", "--json", "--out", str(tmp_path / "evict.json")]
    assert main(call) == 0
    (tmp_path / "other.json").write_text(json.dumps({"bench": "fuse", "format": "another"}))
    (found,) = eviction_sets(tmp_path)
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row.policy for row in found.rows] == ["lru", "lpc", "saecache"] * 2 and {row.predictor for row in found.rows} == {
        "0.77",
        "rule",
    }
    told = judged("hits_over_rivals", found, policy="saecache", rivals=["lru", "lpc"], at_least=0.048).findings
    own = {row["policy"]: row["by_seed"]["hit_tokens_second_half"] for row in rows[:3]}
    best = max((own["lru"], own["lpc"]), key=sum)
    gain = paired([a - b for a, b in zip(own["saecache"], best, strict=True)])
    assert told[0].figure == gain.words("f1") and told[0].basis.command.startswith("python -m engine.bench evict --workload tool_use")
    assert not live_sets(tmp_path) and not predictor_figures(tmp_path)


def test_what_is_shipped_is_read_and_judged():
    evidence = Session(Settings()).evidence()
    groups = [group for group in load_claims() if "viction" in group.title or "SAECache" in group.title]
    assert len(groups) == 3 and EVICT_FORMAT.endswith("/2")
    claims = [claim for group in groups for claim in group.claims]
    verdicts = {claim.claim: judge(claim, evidence).verdict for claim in claims}
    for claim in claims:
        measured = {"predictor_accuracy": evidence.predictors, "predictor_speed": evidence.predictors, "live_saves_time": evidence.lives}
        if claim.rule in measured:
            assert (verdicts[claim.claim] == "not measured yet") == (not measured[claim.rule])
