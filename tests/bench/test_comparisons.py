"""Paired comparisons, equal quality, costs and rows against values worked out by hand."""

import numpy as np
import pytest
from bench_commands import method_record, sample_record

from engine.bench.comparisons import compare_pairs, pairs
from engine.bench.configs import Config, parse_configs, writing_labels
from engine.bench.costs import build_costs
from engine.bench.equal_quality import equal_quality, first_crossing
from engine.bench.fuse import automatic_repeats
from engine.bench.records import Build
from engine.bench.summary import summary_rows
from engine.errors import BadRequest, UnknownName

CONFIGS = (Config("full", None), Config("reuse", None), Config("qcfuse", 0.1), Config("cacheblend", 0.1))


def records(*columns):
    """Returns a record a sample from [(full, reuse, qcfuse, cacheblend) -> (seconds, KL)] columns."""
    return [
        sample_record(i, *(method_record(config.label, *values) for config, values in zip(CONFIGS, column, strict=True)))
        for i, column in enumerate(columns)
    ]


TWO = records([(4.0, 0.0), (1.0, 0.8), (2.0, 0.1), (2.5, 0.4)], [(8.0, 0.0), (2.0, 0.6), (2.0, 0.2), (4.0, 0.3)])


def found(entries, method, versus, metric):
    (entry,) = [e for e in entries if (e["method"], e["versus"], e["metric"]) == (method, versus, metric)]
    return entry


def test_differences_are_paired_by_sample():
    entries = compare_pairs(TWO, CONFIGS)
    entry = found(entries, "qcfuse", "cacheblend", "kl_to_full")
    assert (entry["ratio"], entry["versus_ratio"], entry["n"]) == (0.1, 0.1, 2)
    assert (entry["mean"], entry["lo"], entry["hi"]) == pytest.approx((-0.2, -0.3, -0.1))
    times = found(entries, "qcfuse", "full", "ttft_ratio")
    assert (times["mean"], times["lo"], times["hi"]) == pytest.approx((0.375, 0.25, 0.5)) and times["versus_ratio"] is None
    assert found(entries, "reuse", "full", "ttft_s")["mean"] == pytest.approx(-4.5)
    assert not [e for e in entries if e["metric"] == "f1"], "no sample has it"


def test_what_is_compared():
    names = ("full", "reuse", "random", "qcfuse", "qcfuse_learned", "qcfuse+primed")
    configs = [Config(name, ratio) for name in names for ratio in ((None,) if name in ("full", "reuse") else (0.05, 0.2))]
    made = list(pairs(configs))
    assert len({(p.method, p.versus) for p in made}) == len(made)
    assert {p.method.method for p in made if p.versus.method == "full"} == set(names) - {"full"}
    assert {(p.versus.method, p.versus.ratio) for p in made if p.method == Config("qcfuse", 0.05)} == {
        *(("full", None), ("reuse", None), ("random", 0.05), ("qcfuse_learned", 0.05), ("qcfuse+primed", 0.05)),
    }
    across = [(p.method.label, p.versus.label) for p in made if p.across]
    assert across == [("qcfuse_learned@0.05", "qcfuse@0.2"), ("qcfuse+primed@0.05", "qcfuse@0.2")]


def test_across_ratios_the_ratio_of_mean_divergences_is_given():
    configs = (Config("full", None), Config("qcfuse", 0.2), Config("qcfuse+primed", 0.1))
    made = [
        sample_record(
            i, method_record("full", 4.0, 0.0), method_record("qcfuse@0.2", 2.0, kl), method_record("qcfuse+primed@0.1", 1.0, kl / 4)
        )
        for i, kl in enumerate((0.1, 0.5))
    ]
    entries = compare_pairs(made, configs)
    entry = found(entries, "qcfuse+primed", "qcfuse", "kl_ratio")
    assert (entry["mean"], entry["lo"], entry["hi"]) == pytest.approx((0.25, 0.25, 0.25))
    assert (entry["ratio"], entry["versus_ratio"]) == (0.1, 0.2)


def test_a_curve_is_crossed_where_log_kl_is_linear_in_the_ratio():
    kl, ratios = np.array([0.4, 0.1, 0.025]), np.array([0.1, 0.2, 0.4])
    assert first_crossing(kl, ratios, np.array(0.2)).value == pytest.approx(0.15)
    assert first_crossing(kl, ratios, np.array(0.05)).value == pytest.approx(0.3)
    assert first_crossing(kl, ratios, np.array(0.1)).value == pytest.approx(0.2)
    start = first_crossing(kl, ratios, np.array(0.5))
    assert start.value == 0.1 and start.at_start
    assert np.isnan(first_crossing(kl, ratios, np.array(0.01)).value)
    # A curve that rises again is left at its first crossing.
    assert first_crossing(np.array([0.4, 0.1, 0.3]), ratios, np.array(0.2)).value == pytest.approx(0.15)


def test_equal_quality_interpolates_the_time_at_the_rivals_divergence():
    configs = (
        *(Config("full", None), Config("qcfuse", 0.1), Config("qcfuse", 0.2)),
        *(Config("epic", 0.1), Config("epic", 0.2), Config("epic", 0.3)),
    )
    kl = {"full": 0.0, "qcfuse@0.1": 0.4, "qcfuse@0.2": 0.1, "epic@0.1": 0.5, "epic@0.2": 0.2, "epic@0.3": 0.05}
    time_s = {"full": 10.0, "qcfuse@0.1": 2.0, "qcfuse@0.2": 4.0, "epic@0.1": 4.0, "epic@0.2": 6.0, "epic@0.3": 8.0}
    made = [sample_record(i, *(method_record(c.label, time_s[c.label], kl[c.label]) for c in configs)) for i in range(3)]
    loose, middle, tight = equal_quality(made, configs)
    assert loose["bound"] == "at most" and loose["ttft_ratio"]["mean"] == pytest.approx(0.5) and loose["reached"]
    # log KL halves on half of the way from 0.1 to 0.2: 3 s against 6 s.
    assert middle["ttft_ratio"]["mean"] == pytest.approx(0.5) and middle["ratio"] == pytest.approx(0.15) and "bound" not in middle
    assert (middle["versus"], middle["versus_ratio"], middle["kl"], middle["n"]) == ("epic", 0.2, pytest.approx(0.2), 3)
    assert not tight["reached"] and tight["ttft_ratio"] is None


def test_draws_that_do_not_get_there_take_full_prefills_time():
    configs = (Config("full", None), Config("qcfuse", 0.1), Config("epic", 0.1))
    made = [
        sample_record(i, method_record("full", 9.0, 0.0), method_record("qcfuse@0.1", 1.0, kl), method_record("epic@0.1", 3.0, 0.2))
        for i, kl in enumerate((0.0, 0.3))
    ]
    (entry,) = equal_quality(made, configs)
    assert entry["reached"] and entry["ttft_ratio"]["mean"] == pytest.approx(1 / 3) and entry["ttft_ratio"]["hi"] == pytest.approx(3.0)


def test_caches_pay_off_after_the_time_they_took_over_the_time_they_save():
    costs = build_costs(TWO)
    assert costs[0] == {
        **{"context": "system", "build_s": {"median": 2.0, "min": 2.0, "max": 2.0}, "build_tokens_per_s": 50.0},
        **{"disk_mb": 3.0, "n": 2},
    }
    rows = {row["method"]: row for row in summary_rows(TWO, CONFIGS, costs)}
    assert rows["qcfuse"]["break_even"] == pytest.approx(2.0 / (6.0 - 2.0))
    assert rows["full"]["break_even"] is None and rows["full"]["context"] == ""
    assert build_costs([sample_record(0, builds={"system": Build(None, 100, 5)})]) == []
    slower = records([(1.0, 0.0), (2.0, 0.8), (1.0, 0.1), (3.0, 0.4)])
    assert [row["break_even"] for row in summary_rows(slower, CONFIGS, costs)] == [None] * 4


def test_a_row_holds_medians_means_and_intervals():
    made = [
        sample_record(
            0,
            method_record("full", 4.0, 0.0, f1=1.0, same_answer=True),
            method_record("qcfuse@0.1", 2.0, 0.1, f1=0.5, kv_keys=0.2, kv_values=0.4, work_share=0.25),
        ),
        sample_record(
            1,
            method_record("full", 4.0, 0.0, f1=0.0, same_answer=True),
            method_record("qcfuse@0.1", 1.0, 0.3, f1=None, kv_keys=0.4, kv_values=0.6, work_share=0.2),
        ),
    ]
    full, own = summary_rows(made, (Config("full", None), Config("qcfuse", 0.1)), [])
    assert own["speedup"]["median"] == 3.0 and own["ttft_s"] == {"median": 1.5, "min": 1.0, "max": 2.0}
    assert own["limit"] == pytest.approx(1 / (0.1 + 10 / 100)) and own["limit_share"] == pytest.approx(3 / 5)
    assert own["work_limit"] == pytest.approx(4.5) and own["work_limit_share"] == pytest.approx((2 / 4 + 4 / 5) / 2)
    older = summary_rows(records([(4.0, 0.0), (2.0, 0.1), (2.0, 0.1), (2.0, 0.1)]), CONFIGS, [])[1]
    assert older["work_limit"] is None and older["work_limit_share"] is None and older["limit_share"]
    assert own["kl_to_full"]["mean"] == pytest.approx(0.2) and own["kv_distance"] == pytest.approx({"keys": 0.3, "values": 0.5})
    assert own["f1"] == 0.5 and own["intervals"]["f1"] == {"mean": 0.5, "lo": 0.5, "hi": 0.5}
    assert own["rouge_l"] is None and own["intervals"]["rouge_l"] is None and own["same_answer"] is None
    assert full["f1"] == 0.5 and full["same_answer"] == 1.0 and full["limit"] == 1.0 and full["kv_distance"] is None


def test_configs_are_full_prefill_first_and_every_ratio():
    configs = parse_configs("qcfuse,reuse,full", "0.2,0.1,0.2")
    assert [config.label for config in configs] == ["full", "qcfuse@0.1", "qcfuse@0.2", "reuse"]
    assert writing_labels(configs, None) is None
    assert writing_labels(configs, "0.2") == {"full", "qcfuse@0.2", "reuse"}
    with pytest.raises(BadRequest, match=r"0\.3, which --ratios has not"):
        writing_labels(configs, "0.3")
    with pytest.raises(UnknownName, match="known ones are"):
        parse_configs("qcfuse+nonsense", "0.1")
    assert {"full", "reuse", "qcfuse"} <= {config.method for config in parse_configs("all", "0.1")}


@pytest.mark.parametrize(("num", "repeats"), [(1, 3), (8, 3), (9, 3), (12, 2), (23, 2), (24, 1), (200, 1)])
def test_rounds_are_fewer_for_more_samples(num, repeats):
    assert automatic_repeats(num) == repeats
