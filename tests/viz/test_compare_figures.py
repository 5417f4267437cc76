"""Figures of benchmark results: what the file holds is what is drawn, intervals included."""

import itertools
import math
from dataclasses import replace

import msgspec
import pytest
from results_samples import FULL_S, RATIOS, sample_results

from engine.results import Interval, MedianInterval
from engine.resultsfile import load_folder
from viz import theme
from viz.figures.break_even import break_even_figure, break_even_info, break_even_words
from viz.figures.labels import even_ticks, log_ticks, spread_out, whole_ticks
from viz.figures.pareto import pareto_figure, pareto_info, point_words
from viz.figures.published import PublishedInfo, published_figure
from viz.panels.compare_view import PUBLISHED_FILE

SET = sample_results()
FEW = ("full", "reuse", "qcfuse", "epic")


def changed(method: str, ratio: float | None, **changes):
    return replace(SET, rows=tuple(replace(r, **changes) if (r.method, r.ratio) == (method, ratio) else r for r in SET.rows))


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


def test_a_curve_holds_every_ratio_with_its_time_and_quality():
    info = pareto_info(SET, FEW, "kl_to_full")
    assert [curve.method for curve in info.curves] == ["full", "reuse", "qcfuse", "epic"]
    points = info.curves[2].points
    assert [p.ratio for p in points] == list(RATIOS)
    row = SET.row("qcfuse", 0.3)
    assert (points[3].ttft_s, points[3].quality) == (row.ttft_s.median, row.kl_to_full.mean)
    assert (points[3].lo, points[3].hi) == (row.kl_to_full.lo, row.kl_to_full.hi)


def test_intervals_are_drawn_in_both_directions():
    row = SET.row("qcfuse", 0.3)
    drawn = trace(pareto_figure(pareto_info(SET, FEW, "kl_to_full")), "QCFuse")
    assert drawn.error_y.array[3] == pytest.approx(row.kl_to_full.hi - row.kl_to_full.mean)
    assert drawn.error_y.arrayminus[3] == pytest.approx(row.kl_to_full.mean - row.kl_to_full.lo)
    assert drawn.error_x.array[3] == pytest.approx(row.ttft_s.median * (row.speedup.median / row.speedup.lo - 1))
    assert drawn.error_x.arrayminus[3] == pytest.approx(row.ttft_s.median * (1 - row.speedup.median / row.speedup.hi))


def test_a_metric_without_interval_has_no_bar_and_a_metric_nobody_has_no_curve():
    drawn = trace(pareto_figure(pareto_info(SET, FEW, "same_answer")), "QCFuse")
    assert set(drawn.error_y.array) == {0.0}
    assert pareto_info(changed("epic", 0.1, f1=None), ("epic",), "f1").curves[0].points[1].ratio == 0.2
    without = replace(SET, rows=tuple(replace(row, exact_match=None) for row in SET.rows))
    assert pareto_info(without, FEW, "exact_match").curves == ()


def test_the_front_holds_what_nobody_beats():
    better = Interval(0.01, 0.005, 0.02)
    info = pareto_info(changed("epic", 0.05, kl_to_full=better), FEW, "kl_to_full")
    assert [(p.method, p.ratio) for p in info.front] == [("reuse", None), ("epic", 0.05), ("full", None)]
    higher = pareto_info(SET, FEW, "rouge_l").front
    assert all(a.ttft_s < b.ttft_s and a.quality < b.quality for a, b in itertools.pairwise(higher))


def test_better_is_up_whichever_way_the_metric_goes():
    low, high = (pareto_figure(pareto_info(SET, FEW, name)).layout.yaxis for name in ("kl_to_full", "rouge_l"))
    assert low.range[0] > low.range[1] and "reversed" in low.title.text
    assert high.range[0] < high.range[1] and "higher is better" in high.title.text


def test_every_curve_is_named_beside_it_and_no_two_names_share_a_line():
    figure = pareto_figure(pareto_info(SET, SET.methods(), "kl_to_full"))
    names = {a.text for a in figure.layout.annotations}
    assert names == {theme.method_label(method) for method in SET.methods()} and not figure.layout.showlegend
    heights = sorted(a.ay for a in figure.layout.annotations if a.ayref == "y")
    step = abs(figure.layout.yaxis.range[1] - figure.layout.yaxis.range[0]) * 15 / 452
    assert all(b - a > step for a, b in itertools.pairwise(heights))


SHIPPED = {one.name: one for one in load_folder().sets}


@pytest.mark.parametrize("results", [SET, *SHIPPED.values()], ids=["sample", *SHIPPED])
def test_seconds_begin_at_0_and_every_point_is_in_the_picture_with_room_for_its_name(results):
    for methods in (FEW, results.methods(), ("full",)):
        figure = pareto_figure(pareto_info(results, methods, "kl_to_full"))
        axis, names = figure.layout.xaxis, [a for a in figure.layout.annotations if a.axref == "x"]
        assert axis.type == "linear" and axis.range[0] == 0 == min(axis.tickvals)
        assert all(0 < t < axis.range[1] for curve in figure.data for t in curve.x)
        assert all(a.ax == 0 and a.xanchor == "right" and 6.5 * len(a.text) < figure.layout.margin.l for a in names)


def test_the_time_axis_may_be_logarithmic():
    axis = pareto_figure(pareto_info(SET, FEW, "kl_to_full"), True).layout.xaxis
    assert axis.type == "log" and "log" in axis.title.text and min(axis.tickvals) > 0
    fastest = min(point.ttft_lo_s for curve in pareto_info(SET, FEW, "kl_to_full").curves for point in curve.points)
    assert axis.range[0] < math.log10(fastest)


def test_no_two_curves_look_alike():
    drawn = [t for t in pareto_figure(pareto_info(SET, SET.methods(), "kl_to_full")).data if t.name != "Pareto front"]
    looks = [(t.line.color, t.marker.symbol, t.line.dash) for t in drawn]
    assert len(set(looks)) == len(looks)


def test_a_point_says_what_it_is():
    point = pareto_info(SET, ["qcfuse"], "kl_to_full").curves[0].points[3]
    text = point_words(point, pareto_info(SET, ["qcfuse"], "kl_to_full").metric)
    assert "QCFuse" in text and "ratio 0.3" in text and "n = 60" in text and "[" in text


def test_nothing_chosen_is_a_titled_empty_figure():
    figure = pareto_figure(pareto_info(SET, [], "kl_to_full"), reason="Tick one.")
    assert not figure.data and "Tick one." in figure.layout.annotations[0].text
    assert not pareto_figure(None).data and not break_even_figure(None).data


def test_a_single_row_without_spread_still_draws():
    row = replace(SET.row("qcfuse", 0.3), speedup=MedianInterval(2.0, 0.0, 0.0), kl_to_full=Interval(0.0, 0.0, 0.0))
    alone = replace(SET, rows=(row,))
    assert len(pareto_figure(pareto_info(alone, ["qcfuse"], "kl_to_full"), True).data) == 2


def test_the_crossing_is_where_the_lines_cross():
    info = break_even_info(SET, ("full", "qcfuse", "qcfuse+primed"), 0.3)
    line = info.lines[0]
    assert line.build_s == SET.costs[0].build_s.median and info.lines[1].build_s == SET.costs[1].build_s.median
    assert line.build_s + line.pays_from * line.ttft_s <= line.pays_from * info.full_s
    before = line.pays_from - 1
    assert line.build_s + before * line.ttft_s > before * info.full_s
    drawn = trace(break_even_figure(info), "QCFuse")
    assert drawn.y[0] == pytest.approx(line.build_s + line.ttft_s, abs=1e-3)
    assert trace(break_even_figure(info), "Full prefill").y[0] == pytest.approx(FULL_S)
    assert trace(break_even_figure(info), "pays from here").x[0] == line.pays_from


def test_a_method_as_slow_as_full_prefill_never_pays_and_words_say_so():
    slow = changed("epic", 0.3, ttft_s=replace(SET.row("epic", 0.3).ttft_s, median=FULL_S * 1.1, max=FULL_S * 1.2))
    info = break_even_info(slow, ("full", "qcfuse", "epic"), 0.3)
    assert [line.pays_from for line in info.lines] == [2, None]
    text = break_even_words(info)
    assert "Pays from use 2: QCFuse." in text and "Never: EPIC" in text and break_even_words(None) == ""


def test_names_beside_the_lines_stand_in_a_margin_that_holds_the_longest():
    short = break_even_figure(break_even_info(SET, ("full", "qcfuse"), 0.3))
    long = break_even_figure(break_even_info(SET, ("full", "qcfuse", "qcfuse+primed"), 0.3))
    for figure in (short, long):
        parts = [part for label in figure.layout.annotations for part in label.text.split("<br>")]
        assert figure.layout.margin.r > figure.layout.annotations[0].ax + 6.5 * max(map(len, parts))
    assert "QCFuse + primed" in [label.text for label in long.layout.annotations], "a short name stays on one line"


def test_without_costs_there_is_no_break_even():
    assert break_even_info(replace(SET, costs=()), FEW, 0.3) is None
    assert "no cost" in break_even_figure(None).layout.annotations[0].text


def test_the_published_figure_is_grey_outlines_on_its_own_axes():
    info = msgspec.json.decode(PUBLISHED_FILE.read_bytes(), type=PublishedInfo)
    figure = published_figure(info)
    assert len(figure.data) == 9 and {t.line.color for t in figure.data} == {theme.GREY}
    assert all(t.marker.symbol.endswith("-open") for t in figure.data)
    ours = next(curve for curve in info.curves if curve.method == "qcfuse")
    assert dict(zip(info.ratios, ours.points, strict=True))[0.3] == (0.212, 0.4245)
    assert figure.layout.xaxis.range[0] == 0
    assert "A100" in info.setting and "published" in figure.data[0].hovertext[0]


@pytest.mark.parametrize("places", [[], [5.0], [5.0, 5.0, 5.0], [0.0, 1.0, 99.0, 100.0], [50.0] * 40, [100.0, 0.0, 100.0]])
def test_labels_keep_their_distance_order_and_bounds(places):
    found = spread_out(places, 10, 0, 100)
    gap = min(10.0, 100 / max(1, len(places) - 1))
    ordered = sorted(found)
    assert all(b - a >= gap - 1e-6 for a, b in itertools.pairwise(ordered))
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in found)
    assert all((a <= b) == (c <= d) for a, c in zip(places, found, strict=True) for b, d in zip(places, found, strict=True) if a != b)


def test_labels_far_apart_stay_where_they_are():
    assert spread_out([10.0, 40.0, 80.0], 10, 0, 100) == pytest.approx([10, 40, 80])


def test_ticks_are_round_and_within():
    assert even_ticks(-2.0, 6.4) == [0, 1, 2, 3, 4, 5, 6]
    assert log_ticks(0.3, 7.0) == [0.5, 1, 2, 5]
    assert log_ticks(1, 100_000) == [1, 10, 100, 1000, 10_000, 100_000]
    assert even_ticks(0.0, 1e-4)[0] == 0
    assert whole_ticks(1) == [0, 1] and whole_ticks(3) == [0, 1, 2, 3] and whole_ticks(1_003)[-1] == 1_000
    assert all(len(set(whole_ticks(high))) == len(whole_ticks(high)) <= 9 for high in range(1, 300))
