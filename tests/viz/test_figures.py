"""Figure infos hold the run's numbers; figures stay small, and text in them stays text."""

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from fake_runs import CRITICAL_LAYER, NUM_LAYERS, example_request, fake_run, injection_scenario, large_run

from engine.types import FusionRequest, budget
from viz.figures.agreement import agreement_figure, agreement_info
from viz.figures.bins import anchor_positions, document_bins, prompt_bins, segment_bins
from viz.figures.critical_attention import critical_attention_figure, critical_attention_info
from viz.figures.kv_distance import kv_distance_figure, kv_distance_info
from viz.figures.overlap import overlap_figure, overlap_info
from viz.figures.question_flip import question_flip_figure, question_flip_info
from viz.figures.selection_map import EXACT, QUESTION, SYSTEM, selection_map_figure, selection_map_info
from viz.figures.timeline import timeline_figure, timeline_info
from viz.figures.ttft_split import bar_text, ttft_split_figure, ttft_split_info

RUN = fake_run(example_request(repeats=3))
SMALL = fake_run(example_request(chunks=example_request().chunks[:3], repeats=3))
LARGE = large_run()


def strings(value: object) -> list[str]:
    """Returns every text in a figure's plain form."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    return [text for item in value for text in strings(item)] if isinstance(value, list | tuple) else []


@pytest.mark.parametrize("max_bins", [1, 7, 100, 1280, 10_000])
def test_bins_cover_every_token_once_and_cross_no_border(max_bins):
    bins = prompt_bins(RUN, max_bins)
    assert bins.counts.sum() == len(RUN.tokens) and bins.counts.min() >= 1 and bins.counts.max() <= bins.step
    borders = {RUN.system_len, RUN.question_start, *(c.start for c in RUN.chunks), *(c.stop for c in RUN.chunks)}
    assert borders <= set(bins.edges.tolist())
    assert len(bins.counts) <= max(max_bins, len(borders) + 1)


def test_bins_sum_and_maximum_match_a_loop():
    values = np.arange(23)
    bins = segment_bins([0, 5, 5, 12, 23], 6)
    pieces = [values[a:b] for a, b in zip(bins.edges[:-1], bins.edges[1:], strict=True)]
    assert bins.total(values).tolist() == [int(p.sum()) for p in pieces]
    assert bins.highest(values).tolist() == [int(p.max()) for p in pieces]


def test_map_draws_recomputed_tokens_as_columns_and_layer_0_as_exact():
    info = selection_map_info(SMALL, "qcfuse")
    rows = set(SMALL.method("qcfuse").rows.tolist())
    assert info.bins.step == 1 and info.cells.shape == (NUM_LAYERS, len(SMALL.tokens))
    assert (info.cells[0] == EXACT).all()
    for position in range(len(SMALL.tokens)):
        doc = 100 if position in rows else 0
        want = SYSTEM if position < SMALL.system_len else QUESTION if position >= SMALL.question_start else doc
        assert (info.cells[1:, position] == want).all()
    assert info.num_recomputed == budget(0.3, SMALL.num_doc_tokens)
    assert info.critical_layers == (CRITICAL_LAYER,)


def test_map_bins_hold_the_share_recomputed_and_the_figure_says_so():
    info = selection_map_info(LARGE, "qcfuse")
    doc = (info.bins.edges[:-1] >= LARGE.system_len) & (info.bins.edges[:-1] < LARGE.question_start)
    shares = info.cells[1, doc].astype(float) / 100
    assert info.bins.step > 1 and abs((shares * info.bins.counts[doc]).sum() - info.num_recomputed) < 0.01 * LARGE.num_doc_tokens
    assert "binned" in selection_map_figure(info).layout.title.text


def test_map_of_full_prefill_and_of_direct_reuse():
    full, reuse = selection_map_info(SMALL, "full"), selection_map_info(SMALL, "reuse")
    assert (full.cells[1:, : SMALL.question_start] == 100).all() and full.num_recomputed == SMALL.num_doc_tokens
    assert (reuse.cells[1:, SMALL.system_len : SMALL.question_start] == 0).all() and reuse.num_recomputed == 0


def test_anchors_are_those_next_to_the_critical_layer():
    method = replace(RUN.method("qcfuse"), anchors=np.array([[1, 2, 3], [9, 8, 4]], dtype=np.int32))
    assert anchor_positions(method).tolist() == [4, 8, 9]
    assert anchor_positions(RUN.method("full")).tolist() == []


def test_attention_threshold_is_the_score_of_the_last_chosen_token():
    info, method = critical_attention_info(RUN, "qcfuse"), RUN.method("qcfuse")
    num = budget(RUN.ratio, RUN.num_doc_tokens)
    assert info.num_chosen == num
    assert info.threshold == pytest.approx(float(method.scores[method.ranking[num - 1] - RUN.system_len]))
    assert info.scores.max() == pytest.approx(float(method.scores.max())) and len(info.scores) == len(document_bins(RUN).counts)
    assert info.top[0].position == method.ranking[0] and info.spans == RUN.answer_spans


def test_ttft_rows_hold_parts_spread_and_speedup():
    rows = {row.method: row for row in ttft_split_info(RUN).rows}
    full, ours = RUN.method("full"), RUN.method("qcfuse")
    assert rows["qcfuse"].speedup == pytest.approx(full.ttft_s / ours.ttft_s) and rows["full"].speedup is None
    assert sum(rows["qcfuse"].parts_s) == pytest.approx(sum(ours.parts_s.__getattribute__(p) for p in ours.parts_s.__dataclass_fields__))
    assert "faster" in bar_text(rows["qcfuse"])


def test_ttft_says_slower_and_no_clear_difference():
    slow = fake_run(example_request(repeats=3), slow=6.0)
    assert "slower" in bar_text(ttft_split_info(slow).rows[2])
    same = replace(RUN.method("qcfuse"), ttft_repeats_s=RUN.method("full").ttft_repeats_s)
    assert "no clear difference" in bar_text(ttft_split_info(replace(RUN, methods=(RUN.method("full"), same))).rows[1])


def test_timeline_has_a_lane_per_method_and_device_and_no_decoding():
    info = timeline_info(RUN)
    assert [(row.method, row.lane) for row in info.rows] == [
        ("full", "device"), ("reuse", "disk"), ("reuse", "device"), ("qcfuse", "disk"), ("qcfuse", "device"),
    ]  # fmt: skip
    assert info.end_s == max(span.end_s for m in RUN.methods for span in m.spans)
    drawn = sum(len(trace.x) for trace in timeline_figure(info).data if isinstance(trace, go.Bar))
    assert drawn == sum(len(m.spans) for m in RUN.methods)


def test_kv_distance_leaves_out_the_reference():
    info = kv_distance_info(RUN)
    assert [curve.method for curve in info.curves] == ["reuse", "qcfuse"]
    assert len(kv_distance_figure(info).data) == 4


@pytest.mark.parametrize("run", [RUN, LARGE], ids=["2,200x30", "10,000x36"])
def test_figures_stay_under_a_megabyte_and_keep_fonts_readable(run):
    for figure in (
        selection_map_figure(selection_map_info(run, "qcfuse")),
        critical_attention_figure(critical_attention_info(run, "qcfuse")),
        agreement_figure(agreement_info(run)),
        ttft_split_figure(ttft_split_info(run)),
        timeline_figure(timeline_info(run)),
        kv_distance_figure(kv_distance_info(run)),
    ):
        assert len(figure.to_json()) < 1_000_000
        assert figure.layout.font.size >= 13 and figure.layout.title.text
        assert figure.layout.paper_bgcolor == "rgba(0,0,0,0)"


def test_empty_figures_have_a_title_and_a_reason():
    for figure in (
        selection_map_figure(None),
        critical_attention_figure(critical_attention_info(RUN, "reuse"), "Direct reuse reads no attention scores."),
        ttft_split_figure(None),
        timeline_figure(timeline_info(replace(RUN, methods=()))),
        kv_distance_figure(kv_distance_info(replace(RUN, methods=(RUN.method("full"),)))),
    ):
        assert figure.layout.title.text and not figure.data
        assert figure.layout.annotations[0].text


def test_hostile_titles_and_tokens_reach_no_figure_as_markup():
    hostile = injection_scenario()
    run = fake_run(hostile.request("q1", chunks=hostile.chunks()[:2], repeats=2))
    evil = replace(run.method("qcfuse"), method="<img src=x onerror=1>")
    run = replace(run, methods=(*run.methods, evil))
    for figure in (
        selection_map_figure(selection_map_info(run, evil.method)),
        critical_attention_figure(critical_attention_info(run, evil.method)),
        agreement_figure(agreement_info(run)),
        overlap_figure(overlap_info(agreement_info(run))),
        question_flip_figure(question_flip_info(run, run, evil.method)),
        ttft_split_figure(ttft_split_info(run)),
        timeline_figure(timeline_info(run)),
        kv_distance_figure(kv_distance_info(run)),
    ):
        for text in strings(figure.to_plotly_json()):
            bare = text.replace("<b>", "").replace("</b>", "").replace("<br>", "").replace("</span>", "")
            assert "<" not in bare.replace("<span style='font-size:13px'>", ""), text


@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_extreme_ratios_draw(ratio):
    run = fake_run(example_request(ratio=ratio, repeats=1))
    info = critical_attention_info(run, "qcfuse")
    assert info.num_chosen == budget(ratio, run.num_doc_tokens) and (info.threshold is None) == (ratio == 0.0)
    critical_attention_figure(info)
    selection_map_figure(selection_map_info(run, "qcfuse"))


def test_a_tiny_run_without_spread_or_gold_draws():
    request = FusionRequest("Why?", example_request().chunks[:1], repeats=1)
    run = fake_run(request, ("qcfuse",))
    for figure in (ttft_split_figure(ttft_split_info(run)), timeline_figure(timeline_info(run))):
        assert figure.data
