"""Labels beside curves that do not cover each other, and ticks at round numbers."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

MAX_TICKS = 9
# Behind a label that lies over a picture; assets/fusescope.css makes it the panel's own colour, light or dark.
HALO = "#FFFFFF"


def spread_out(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Returns places at least `gap` apart and within [low, high], in the order given, each near where it was.

    Neighbours that are too close form a group around their mean, groups that then touch are joined. Where there is not
    room for all, they are spread evenly.
    """
    if gap * (len(places) - 1) > high - low:
        gap = (high - low) / max(1, len(places) - 1)
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: list[list[int]] = []
    for i in order:
        groups.append([i])
        while len(groups) > 1 and _start(groups[-1], places, gap, low, high) < _end(groups[-2], places, gap, low, high) + gap - 1e-9:
            groups[-2:] = [groups[-2] + groups[-1]]
    result = [0.0] * len(places)
    for group in groups:
        start = _start(group, places, gap, low, high)
        for k, i in enumerate(group):
            result[i] = start + k * gap
    return result


def _start(group: Sequence[int], places: Sequence[float], gap: float, low: float, high: float) -> float:
    """Returns where the first of a group stands."""
    length = gap * (len(group) - 1)
    middle = sum(places[i] for i in group) / len(group)
    return min(max(middle - length / 2, low), high - length)


def _end(group: Sequence[int], places: Sequence[float], gap: float, low: float, high: float) -> float:
    return _start(group, places, gap, low, high) + gap * (len(group) - 1)


def room_of(figure: go.Figure) -> float:
    """Returns the height of a figure's plotting area in pixels."""
    margin = figure.layout.margin
    return float(figure.layout.height - margin.t - margin.b)


def even_ticks(low: float, high: float) -> list[float]:
    """Returns at most nine round numbers from max(0, low) to high, evenly spaced."""
    span = max(high - max(0.0, low), 1e-9)
    rough = span / (MAX_TICKS - 2)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(max(0.0, low) / step - 1e-9)
    return [round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def whole_ticks(high: float) -> list[int]:
    """Returns at most nine whole numbers from 0 to high, evenly spaced: where things are counted there is nothing between two."""
    return [round(tick) for tick in even_ticks(0.0, high) if tick == round(tick)]


def log_ticks(low: float, high: float) -> list[float]:
    """Returns round numbers from low to high for a logarithmic axis: 1, 2, 5 of every power of ten, powers alone where those are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(powers) <= 4 else (1,)
    return [tick for power in powers for factor in factors if low <= (tick := factor * 10.0**power) <= high]
