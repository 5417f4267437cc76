"""Bars that hatch what their colour says, and moments marked on a picture's clock."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from viz import theme
from viz.figures import words


def hatched(color: str, hatch: str, line: dict[str, Any]) -> dict[str, Any]:
    """Returns the marker of a bar: the hatch lies in white over the colour."""
    pattern = {"shape": hatch, "size": 7, "solidity": 0.25, "fgcolor": "#FFFFFF", "fillmode": "overlay"}
    return {"color": color, "line": line, "pattern": pattern}


def add_moments(figure: go.Figure, moments: Sequence[tuple[float, float]], name: str, said: str, marker: dict[str, Any]) -> None:
    """Marks times [(seconds, height)]; `said` is what each says of itself, with {} for its time. Nothing is added where there is none."""
    if moments:
        figure.add_scatter(
            x=[time_s for time_s, _ in moments],
            y=[height for _, height in moments],
            mode="markers",
            name=name,
            hovertext=[said.format(words.seconds(time_s)) for time_s, _ in moments],
            hoverinfo="text",
            marker={"color": theme.INK, "line": {"width": 1.5, "color": "#FFFFFF"}} | marker,
        )
