"""Labels in the pictures of the Evict tab, on the recorded runs: nothing is drawn through one, and no two share a line."""

import itertools
import re

import pytest

from engine.cache_types import LivePoint
from engine.replays import Replays
from engine.turns import Turns
from viz.figures.evict_capacity import evict_capacity_figure, evict_capacity_info
from viz.figures.evict_hit_rate import evict_hit_rate_figure, evict_hit_rate_info
from viz.figures.evict_hit_time import evict_hit_time_figure, evict_hit_time_info
from viz.figures.evict_live import evict_live_figure, evict_live_held_figure, evict_live_info
from viz.figures.labels import HALO, room_of
from viz.panels.evict_board import recorded_points
from viz.panels.evict_live_view import live_view

LOADS = ("balanced", "tool_use")
TEXT_PX = 15


@pytest.fixture(scope="module")
def recorded():
    replays = Replays(Turns())
    return {load: (replays.recorded(load), recorded_points(replays.recorded_curve(load))) for load in LOADS}


def lines_of(figure, span):
    """Returns at which height in pixels, from the bottom, each name beside a line stands."""
    room = room_of(figure)
    names = [a for a in figure.layout.annotations if a.showarrow]
    return [(a.y - span[0]) / (span[1] - span[0]) * room - a.ay for a in names]


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("unit", ["tokens", "blocks"])
def test_nothing_runs_through_the_names_above_the_bars(recorded, load, unit):
    runs, _ = recorded[load]
    figure = evict_hit_rate_figure(evict_hit_rate_info(runs, unit))
    names = figure.layout.annotations
    assert len(names) == len(runs) and {a.bgcolor for a in names} == {HALO} and {a.yanchor for a in names} == {"bottom"}
    low, high = figure.layout.yaxis.range
    text = TEXT_PX / room_of(figure) * (low - high)
    for name, shape in itertools.product(names, figure.layout.shapes):
        # The axis runs downwards: a name stands from its foot up to a smaller number.
        assert shape.y1 <= name.y - text or shape.y0 >= name.y
    assert all(b.y - a.y > text for a, b in itertools.pairwise(names)), "a name stands on the one below it"


@pytest.mark.parametrize("load", LOADS)
def test_names_beside_lines_are_apart_and_within_the_picture(recorded, load):
    runs, points = recorded[load]
    curve = evict_capacity_figure(evict_capacity_info(points, 0.05))
    time = evict_hit_time_figure(evict_hit_time_info(runs))
    for figure in (curve, time):
        places = sorted(lines_of(figure, figure.layout.yaxis.range))
        assert len(places) == len({run.policy for run in runs})
        assert all(b - a >= TEXT_PX for a, b in itertools.pairwise(places))
        assert places[0] > 0 and places[-1] < room_of(figure)


@pytest.mark.parametrize("load", LOADS)
def test_the_capacity_looked_at_is_named_above_every_curve_and_each_one_replayed_has_a_tick(recorded, load):
    _, points = recorded[load]
    figure = evict_capacity_figure(evict_capacity_info(points, 0.05))
    (here,) = [a for a in figure.layout.annotations if a.text.startswith("here")]
    assert (here.y, here.yref, here.yanchor) == (1, "paper", "bottom")
    assert list(figure.layout.xaxis.tickvals) == sorted({point.share for point in points})


def test_requests_are_counted_in_whole_numbers_however_few_there_were():
    for num in (1, 2, 3, 40):
        points = [LivePoint(name, i, "chat", 0.5, 100, 50, 0, (0, 1, 2, 3), 4) for i in range(num) for name in ("lru", "saecache")]
        info = evict_live_info(points, ("lru", "saecache"))
        for figure in (evict_live_figure(info), evict_live_held_figure(info, "saecache")):
            axis = figure.layout.xaxis
            assert len(axis.tickvals) <= 10 and all(tick == int(tick) for tick in axis.tickvals)
            assert axis.range[0] <= axis.tickvals[0] <= axis.tickvals[-1] <= axis.range[1]


def test_one_request_has_a_time_and_no_interval():
    def mean(num):
        points = [LivePoint(name, i, "chat", 0.5 + i, 100, 50, 0, (0, 1, 2, 3), 4) for i in range(num) for name in ("lru", "saecache")]
        return live_view(points, ("lru", "saecache")).table["rows"][0][2]

    assert mean(1) == "0.50 s" and re.fullmatch(r"1\.00 s \[.+, .+\]", mean(2))
