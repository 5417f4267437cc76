"""The figure of critical layers: what it marks, what its subtitle says, and tables without a curve."""

import re

import plotly.graph_objects as go

from viz.figures.layer_recall import layer_recall_figure, layer_recall_info

SCORES = [
    (layer, 0.1 + 0.01 * layer, 0.02, 0.3 - 0.01 * layer if layer % 2 else None, 0.01 if layer % 2 else None) for layer in range(1, 12)
]
MEASURED = layer_recall_info("m", (9, 7, 11, 5), "measured", "2026-11-30", 80, SCORES, num_layers=12)


def subtitle(figure: go.Figure) -> str:
    """Returns the lines below the title as one."""
    return re.sub("<[^>]*>", "", figure.layout.title.text.partition("<br>")[2].replace("<br>", " "))


def marked(figure: go.Figure) -> list[list[int]]:
    return [list(trace.x) for trace in figure.data if trace.name == "in use"]


def test_the_layers_in_use_are_marked_on_both_curves():
    figure = layer_recall_figure(MEASURED)
    assert MEASURED.used == (9, 7, 11) and marked(figure) == [[9, 7, 11], [9, 7, 11]]
    assert len(figure.layout.shapes) == 3


def test_kl_is_drawn_where_it_was_measured_and_errors_everywhere():
    recall, kl = (trace for trace in layer_recall_figure(MEASURED).data if trace.error_y.array is not None)
    assert list(recall.x) == list(range(1, 12)) and list(kl.x) == [1, 3, 5, 7, 9, 11] and kl.yaxis == "y2"
    assert len(recall.error_y.array) == 11 and len(kl.error_y.array) == 6
    assert "KL 0.2100 ± 0.0100" in kl.hovertext[4] and "rank 1" in kl.hovertext[4]


def test_the_subtitle_says_origin_number_and_date():
    assert all(part in subtitle(layer_recall_figure(MEASURED)) for part in ("9, 7, 11", "measured", "n = 80", "2026-11-30"))


def test_without_kl_there_is_one_panel():
    figure = layer_recall_figure(layer_recall_info("m", (3,), "measured", "", 0, [(3, 0.2, 0.0, None, None)]))
    assert "yaxis2" not in figure.to_plotly_json()["layout"] and len(marked(figure)) == 1
    assert "n =" not in subtitle(figure)


def test_a_published_table_shows_ranks_and_says_that_it_has_no_curve():
    info = layer_recall_info("Qwen3-8B", (20, 21, 18, 17), "paper", "2026-06-04", 0, num_layers=36)
    (trace,) = (figure := layer_recall_figure(info)).data
    assert list(trace.x) == [20, 21, 18, 17] and list(trace.text) == ["1", "2", "3", "4"]
    assert "published" in subtitle(figure) and "No curve" in subtitle(figure)
    assert figure.layout.xaxis.range == (-0.6, 35.6)


def test_a_guess_says_so_and_nothing_is_a_titled_empty_figure():
    assert "guess" in subtitle(layer_recall_figure(layer_recall_info("m", (20,), "guess", "", 0, num_layers=30)))
    empty = layer_recall_figure(None, "Load a model first.")
    assert not empty.data and empty.layout.title.text and "Load a model" in empty.layout.annotations[0].text


def test_a_hostile_name_is_drawn_as_it_stands():
    figure = layer_recall_figure(layer_recall_info("<img src=x>", (1,), "<b>", "<i>", 1, num_layers=4))
    assert "<img" not in figure.layout.title.text and "<i>" not in figure.layout.title.text
