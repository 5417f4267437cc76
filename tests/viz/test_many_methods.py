"""Pictures of a run with every method: layers that ran more rows, several critical layers, methods without scores."""

import re
from dataclasses import replace

import numpy as np
import pytest
from fake_runs import ALL_METHODS, NUM_LAYERS, example_request, fake_run

from viz.figures.critical_attention import critical_attention_figure, critical_attention_info
from viz.figures.kv_distance import kv_distance_figure, kv_distance_info
from viz.figures.layers import exact_layers, layer_words, stretches, whole_layers, wider_layers
from viz.figures.selection_map import EXACT, selection_map_figure, selection_map_info
from viz.figures.timeline import timeline_figure, timeline_info
from viz.figures.ttft_split import ttft_split_figure, ttft_split_info

RUN = fake_run(example_request(chunks=example_request().chunks[:3], repeats=3), ALL_METHODS)
DOC = slice(RUN.system_len, RUN.question_start)


def plain_title(figure):
    """Returns title and subtitle on one line."""
    return re.sub("<[^>]*>", "", figure.layout.title.text.replace("<br>", " "))


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ((20,), "layer 20"),
        ((20, 22, 24), "layers 20, 22 and 24"),
        ((29, 28), "layers 28 and 29"),
        (tuple(range(30)), "layers 0–29"),
        ((3, 10, 11, 12), "layers 3, 10–12"),
    ],
)
def test_layers_in_words(layers, words):
    assert layer_words(layers) == words
    assert [layer for a, b in stretches(layers) for layer in range(a, b + 1)] == sorted(layers)


def test_a_layer_that_all_tokens_ran_through_is_drawn_as_computed_and_the_one_behind_it_as_exact():
    info, method = selection_map_info(RUN, "cacheblend"), RUN.method("cacheblend")
    assert whole_layers(RUN, method) == (0,) and exact_layers(RUN, method) == 2
    assert (info.cells[0, : RUN.question_start] == 100).all() and (info.cells[1] == EXACT).all()
    mask = np.isin(np.arange(len(RUN.tokens)), method.rows)[DOC]
    assert ((info.cells[2, DOC] == 100) == mask).all()
    assert f"layer 0 ran all {len(RUN.tokens):,} tokens" in plain_title(selection_map_figure(info))
    assert any("recomputed in layers 2–29" in line for line in info.hover)


def test_layers_that_ran_some_more_rows_are_named_since_nobody_knows_which():
    method = RUN.method("cacheblend")
    rows = method.layer_rows.copy()
    rows[2:5] = len(method.rows) + 7
    run = replace(RUN, methods=(replace(method, layer_rows=rows),))
    assert wider_layers(run, run.methods[0]) == (2, 3, 4)
    assert f"layers 2–4 ran up to {len(method.rows) + 7:,}" in selection_map_info(run, "cacheblend").layer_note


def test_full_prefill_and_older_runs_have_no_layer_note():
    assert selection_map_info(RUN, "full").layer_note == selection_map_info(RUN, "qcfuse").layer_note == ""


@pytest.mark.parametrize(("method", "num_outlines"), [("qcfuse", 1), ("qcfuse_cv", 3), ("qcall", 1), ("qcfuse_learned", 1), ("epic", 0)])
def test_critical_layers_are_outlined_by_stretch_with_one_label(method, num_outlines):
    figure = selection_map_figure(selection_map_info(RUN, method))
    assert len(figure.layout.shapes) == 2 * num_outlines
    labels = [a.text for a in figure.layout.annotations if "scores are read here" in a.text]
    assert len(labels) == min(1, num_outlines)


def test_scores_say_whether_they_look_at_the_question():
    def subtitle(method: str) -> str:
        return plain_title(critical_attention_figure(critical_attention_info(RUN, method)))

    assert "attention of the question at layers 20, 22 and 24" in subtitle("qcfuse_cv")
    assert "attention of the question at layers 0–29" in subtitle("qcall")
    assert "do not look at the question" in subtitle("cacheblend")
    assert all(critical_attention_info(RUN, name) is None for name in ("epic", "random", "reuse", "ape", "full"))


def test_every_method_has_its_map_and_all_share_the_other_figures():
    for name in ALL_METHODS:
        assert selection_map_figure(selection_map_info(RUN, name)).data
    assert len(ttft_split_info(RUN).rows) == len(ALL_METHODS)
    info = timeline_info(RUN)
    assert {row.method for row in info.rows} == set(ALL_METHODS) and len(set(info.heights)) == len(info.rows)
    names = [a.text for a in timeline_figure(info).layout.annotations]
    assert len(names) == len(set(names)) == len(ALL_METHODS)
    assert any(trace.name == "correct keys" for trace in timeline_figure(info).data)
    for figure in (timeline_figure(info), ttft_split_figure(ttft_split_info(RUN)), kv_distance_figure(kv_distance_info(RUN))):
        assert len(figure.to_json()) < 1_000_000 and figure.layout.height < 1400


def test_kv_distance_has_a_panel_each_for_k_and_v_and_says_what_is_not_comparable():
    info = kv_distance_info(RUN)
    figure = kv_distance_figure(info)
    assert info.unknown == ("ape",) and "not comparable: APE" in figure.layout.title.text
    assert len(figure.data) == 2 * (len(ALL_METHODS) - 2) and {trace.yaxis for trace in figure.data} == {"y", "y2"}
    looks = {(trace.line.color, trace.line.dash) for trace in figure.data if trace.yaxis == "y"}
    assert len(looks) == len(info.curves)
    assert all(len(trace.y) == NUM_LAYERS for trace in figure.data)
