"""What bars and moments of several pictures have in common."""

import plotly.graph_objects as go

from viz import theme
from viz.figures.marks import add_moments, hatched
from viz.figures.words import seconds


def test_a_moment_stands_at_its_time_and_says_it():
    figure = go.Figure()
    add_moments(figure, [(0.5, 1), (2.0, 3)], "first token", "after {} (median)", {"symbol": "star", "size": 12})
    (trace,) = figure.data
    assert (list(trace.x), list(trace.y), trace.name, trace.mode) == ([0.5, 2.0], [1, 3], "first token", "markers")
    assert list(trace.hovertext) == [f"after {seconds(t)} (median)" for t in (0.5, 2.0)]
    assert (trace.marker.symbol, trace.marker.size, trace.marker.color) == ("star", 12, theme.INK)


def test_without_a_moment_nothing_is_named():
    figure = go.Figure()
    add_moments(figure, [], "first token", "{}", {"symbol": "star"})
    assert not figure.data


def test_a_hatch_lies_over_its_colour():
    figure = go.Figure(go.Bar(x=[1], y=[1], marker=hatched("#123456", "x", {"width": 0})))
    marker = figure.data[0].marker
    assert (marker.color, marker.pattern.shape, marker.pattern.fillmode, marker.line.width) == ("#123456", "x", "overlay", 0)
