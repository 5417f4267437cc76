"""The strip of chunks over a picture whose x axis is the prompt position."""

from dataclasses import dataclass

import plotly.graph_objects as go

from engine.types import Run
from viz import theme
from viz.figures import words


@dataclass(frozen=True, slots=True)
class Band:
    """A chunk on the position axis."""

    number: int
    title: str
    start: int
    stop: int


def chunk_bands(run: Run) -> tuple[Band, ...]:
    """Returns the chunks of a run in prompt order."""
    return tuple(Band(i, chunk.title, chunk.start, chunk.stop) for i, chunk in enumerate(run.chunks, start=1))


def add_chunk_bands(figure: go.Figure, bands: tuple[Band, ...], num_tokens: int) -> None:
    """Adds a strip of chunks with number and title on the axis y2, from 1.75 to 5; titles show where they fit."""
    fills = ["rgba(128,128,128,0.34)" if band.number % 2 else "rgba(128,128,128,0.16)" for band in bands]
    common = {
        "x": [(band.start + band.stop) / 2 for band in bands],
        "width": [band.stop - band.start for band in bands],
        "yaxis": "y2",
        "hoverinfo": "skip",
        "showlegend": False,
        "marker": {"color": fills, "line": {"width": 0}},
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "inside",
        "textfont": {"size": 13},
        "insidetextfont": {"size": 13, "color": theme.INK},
    }
    figure.add_bar(y=[1.15] * len(bands), base=3.85, **common)
    figure.add_bar(y=[2.1] * len(bands), base=1.75, text=[_two_lines(band.title) for band in bands], **common)
    numbered = _spaced(bands, num_tokens * 0.06)
    figure.add_scatter(
        x=[(band.start + band.stop) / 2 for band in numbered],
        y=[4.42] * len(numbered),
        yaxis="y2",
        mode="text",
        text=[f"<b>{band.number}</b>" for band in numbered],
        hoverinfo="skip",
        showlegend=False,
    )


def _spaced(bands: tuple[Band, ...], distance: float) -> list[Band]:
    """Returns the bands whose middles are at least `distance` apart, so that their numbers fit on a phone."""
    kept: list[Band] = []
    for band in bands:
        if not kept or (band.start + band.stop - kept[-1].start - kept[-1].stop) / 2 >= distance:
            kept.append(band)
    return kept


def _two_lines(title: str) -> str:
    """Returns a title cut to two short lines, so that it fits over a chunk on a wide screen."""
    lines = [""]
    for word in words.shorten(title, 26).split(" "):
        if lines[-1] and len(lines[-1]) + len(word) > 12 and len(lines) < 2:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(words.plain(words.shorten(line, 14)) for line in lines)
