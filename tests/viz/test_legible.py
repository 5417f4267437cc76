"""What has to be read in a picture: ink against its ground, thin things against edges, words within their room."""

import re

import numpy as np
import pytest
from fake_runs import ALL_METHODS, example_request, fake_run
from results_samples import sample_results

from viz import theme
from viz.figures.agreement import agreement_info
from viz.figures.break_even import break_even_figure, break_even_info
from viz.figures.critical_attention import critical_attention_figure, critical_attention_info
from viz.figures.labels import room_of
from viz.figures.layer_recall import layer_recall_figure, layer_recall_info
from viz.figures.overlap import overlap_figure, overlap_info
from viz.figures.pareto import pareto_figure, pareto_info
from viz.figures.timeline import timeline_figure, timeline_info

RUN, SET = fake_run(example_request(), ALL_METHODS), sample_results()
AA = 4.5


def luminance(color: str) -> float:
    """Returns the relative luminance of WCAG of a colour #RRGGBB."""
    parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return float(np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722))


def contrast(first: str, second: str) -> float:
    """Returns the contrast of WCAG of two colours."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_the_numbers_of_the_matrix_read_on_every_shade():
    heat = overlap_figure(overlap_info(agreement_info(RUN))).data[0]
    assert all(contrast(heat.textfont.color, color) >= AA for _, color in heat.colorscale) and heat.textfont.size >= 12


def test_a_read_is_not_covered_by_an_edge():
    bars = {bar.name: bar.marker.line.width for bar in timeline_figure(timeline_info(RUN)).data if bar.type == "bar"}
    assert bars[theme.STAGE_LABELS["load"]] == 0 < bars[theme.STAGE_LABELS["recompute"]]


@pytest.mark.parametrize("method", ["qcfuse", "cacheblend", "qcall"])
def test_the_word_with_the_highest_score_has_room_above_it(method):
    info = critical_attention_info(RUN, method)
    figure = critical_attention_figure(info)
    low, high = figure.layout.yaxis.range
    room = (high - np.log10(max(token.score for token in info.top))) / (high - low) * room_of(figure)
    assert room >= 24


def test_what_stands_below_a_title_fits_a_phone():
    figures = [
        pareto_figure(pareto_info(SET, SET.methods(), "kl_to_full")),
        break_even_figure(break_even_info(SET, SET.methods(), 0.3)),
        layer_recall_figure(layer_recall_info("m", (9, 7, 11), "measured", "2026-11-30", 80, [(3, 0.2, 0.1, 0.2, 0.1)], num_layers=12)),
    ]
    for figure in figures:
        lines = [re.sub("<[^>]*>", "", line) for line in figure.layout.title.text.split("<br>")[1:]]
        assert lines and max(map(len, lines)) <= theme.SUBTITLE_CHARS
