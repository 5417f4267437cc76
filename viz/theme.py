"""What all pictures share: colours by meaning, names of methods, layouts.

Colours are Okabe-Ito and never the only channel: hatches, outlines and marker shapes repeat them. Text and
grid colours are mid-tones that read on white and on black; assets/fusescope.css sharpens them per theme.
"""

from collections.abc import Iterable
from typing import Any

import plotly.graph_objects as go

BLUE, ORANGE, SKY, VERMILLION = "#0072B2", "#E69F00", "#56B4E9", "#D55E00"
GREEN, PINK, GREY, AMBER = "#009E73", "#CC79A7", "#999999", "#F5C710"
INK = "#7A7A7A"
GRID = "rgba(128,128,128,0.28)"
CLEAR = "rgba(0,0,0,0)"
FONT = "Source Sans Pro, system-ui, sans-serif"

STATE_COLORS = {"loaded": BLUE, "recomputed": ORANGE, "exact": SKY, "system": GREY, "question": PINK}
STATE_LABELS = {
    "loaded": "loaded",
    "recomputed": "recomputed",
    "exact": "layer 0: exact",
    "system": "system prompt",
    "question": "question",
}

STAGE_COLORS = {"probe": PINK, "select": GREEN, "load": BLUE, "load_wait": SKY, "recompute": ORANGE, "head": GREY, "decode": GREY}
STAGE_HATCH = {"probe": "/", "select": "x", "load": "", "load_wait": ".", "recompute": "", "head": "-", "decode": "|"}
STAGE_LABELS = {
    "probe": "probe",
    "select": "select",
    "load": "load",
    "load_wait": "wait for load",
    "recompute": "recompute",
    "head": "first token",
    "decode": "decode",
}

METHOD_LABELS = {
    "full": "Full prefill",
    "reuse": "Direct reuse",
    "qcfuse": "QCFuse",
    "cacheblend": "CacheBlend",
    "epic": "EPIC",
    "kvshare": "KVShare",
    "qcall": "QCAll",
    "qclast": "QCLast",
    "random": "Random",
}
METHOD_COLORS = {
    "full": GREY,
    "reuse": BLUE,
    "qcfuse": VERMILLION,
    "cacheblend": PINK,
    "epic": GREEN,
    "kvshare": AMBER,
    "qcall": SKY,
    "qclast": ORANGE,
    "random": INK,
}
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "hexagon", "cross", "bowtie")


def method_label(name: str) -> str:
    """Returns the name of a method as shown to people."""
    return METHOD_LABELS.get(name, name)


def method_order(names: Iterable[str]) -> tuple[str, ...]:
    """Returns names in the order people read them: full prefill, direct reuse, ours, the rivals, unknown ones last."""
    known = list(METHOD_LABELS)
    return tuple(sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name)))


def method_color(name: str) -> str:
    """Returns the colour of a method's curve."""
    return METHOD_COLORS.get(name, INK)


def method_symbol(name: str) -> str:
    """Returns the marker shape that repeats the colour of a method."""
    names = list(METHOD_COLORS)
    return SYMBOLS[names.index(name) % len(SYMBOLS)] if name in names else "hourglass"


def base_layout(title: str, height: int, subtitle: str = "", **changes: Any) -> go.Layout:
    """Returns a layout with transparent background, our font and a horizontal legend that grows downwards."""
    text = f"{title}<br><span style='font-size:13px'>{subtitle}</span>" if subtitle else title
    heading = {
        "text": text,
        "font": {"size": 17},
        "x": 0,
        "xref": "container",
        "xanchor": "left",
        "y": 1,
        "yref": "container",
        "yanchor": "top",
        "pad": {"t": 22 if subtitle else 8, "l": 2},
    }
    axis = {
        "gridcolor": GRID,
        "zerolinecolor": GRID,
        "linecolor": GRID,
        "tickfont": {"size": 13},
        "title": {"font": {"size": 13}, "standoff": 8},
    }
    layout = go.Layout(
        template="none",
        title=heading,
        height=height,
        margin={"l": 56, "r": 14, "t": 64 if subtitle else 44, "b": 52},
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        font={"family": FONT, "size": 13, "color": INK},
        hoverlabel={"font": {"size": 14, "family": FONT}, "align": "left", "namelength": -1},
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "yanchor": "top",
            "font": {"size": 13},
            "itemclick": False,
            "itemdoubleclick": False,
        },
        modebar={"bgcolor": CLEAR, "color": INK, "remove": ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"]},
        dragmode=False,
        xaxis=axis,
        yaxis=axis,
    )
    # 52 pixels below the axis on a wide screen: room for tick labels and the axis title.
    layout.legend.y = -52 / max(height - 150, 60)
    return layout.update(changes)


def empty_figure(title: str, reason: str, height: int = 150) -> go.Figure:
    """Returns a titled figure without data that says why; both texts are drawn as they are, so they must be safe."""
    layout = base_layout(title, height, showlegend=False)
    layout.xaxis.visible = layout.yaxis.visible = False
    layout.margin.l = 4
    figure = go.Figure(layout=layout)
    wrapped = "<br>".join(_wrap(reason, 46))
    figure.add_annotation(
        text=wrapped, x=0, y=0.5, xref="paper", yref="paper", xanchor="left", align="left", showarrow=False, font={"size": 14}
    )
    return figure


def _wrap(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
