"""What all pictures share: colours by meaning, names of methods, layouts.

Colours are Okabe-Ito and never the only channel: hatches, outlines and marker shapes repeat them. Text and
grid colours are mid-tones that read on white and on black; assets/fusescope.css sharpens them per theme.
"""

import textwrap
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import plotly.graph_objects as go

BLUE, ORANGE, SKY, VERMILLION = "#0072B2", "#E69F00", "#56B4E9", "#D55E00"
GREEN, PINK, GREY, AMBER = "#009E73", "#CC79A7", "#999999", "#F5C710"
INK = "#7A7A7A"
GRID = "rgba(128,128,128,0.28)"
CLEAR = "rgba(0,0,0,0)"
SUBTITLE_CHARS = 54
FONT = "Source Sans Pro, system-ui, sans-serif"

STATE_COLORS = {"loaded": BLUE, "recomputed": ORANGE, "exact": SKY, "system": GREY, "question": PINK}
# Tokens recomputed only for question A, for both, only for question B.
FLIP_COLORS = ("#7A5FE6", STATE_COLORS["recomputed"], PINK)
STATE_LABELS = {
    "loaded": "loaded",
    "recomputed": "recomputed",
    "exact": "exact for every token",
    "system": "system prompt",
    "question": "question",
}

STAGE_COLORS = {
    "probe": PINK,
    "select": GREEN,
    "load": BLUE,
    "load_wait": SKY,
    "recompute": ORANGE,
    "correct": VERMILLION,
    "head": GREY,
    "decode": GREY,
}
STAGE_HATCH = {
    "probe": "/",
    "select": "x",
    "load": "",
    "load_wait": ".",
    "recompute": "",
    "correct": "+",
    "head": "-",
    "decode": "|",
}
STAGE_LABELS = {
    "probe": "probe",
    "select": "select",
    "load": "load",
    "load_wait": "wait for load",
    "recompute": "recompute",
    "correct": "correct keys",
    "head": "first token",
    "decode": "decode",
}


class MethodStyle(NamedTuple):
    """How a method is named and drawn; colour, marker and dash each tell it apart, so that none is needed."""

    label: str
    color: str
    symbol: str
    dash: str = "solid"


# In the order people read them: the two ends, ours, the rivals. Ours are the reds.
METHODS = {
    "full": MethodStyle("Full prefill", GREY, "star"),
    "reuse": MethodStyle("Direct reuse", BLUE, "square"),
    "prefix_cache": MethodStyle("Prefix cache hit", "#8A6D3B", "circle", "longdashdot"),
    "qcfuse": MethodStyle("QCFuse", VERMILLION, "diamond"),
    "qcfuse_cv": MethodStyle("QCFuse CV", "#F08A60", "triangle-down", "longdash"),
    "qcfuse_learned": MethodStyle("QCFuse learned", "#B03A28", "hexagram", "dashdot"),
    "cacheblend": MethodStyle("CacheBlend", PINK, "triangle-up"),
    "epic": MethodStyle("EPIC", GREEN, "x"),
    "kvshare": MethodStyle("KVShare", AMBER, "hourglass"),
    "qcall": MethodStyle("ProphetKV (QCAll)", SKY, "hexagon"),
    "qclast": MethodStyle("FusionRAG (QCLast)", ORANGE, "cross"),
    "infoflow": MethodStyle("InfoFlow", "#5A4BF0", "bowtie"),
    "ape": MethodStyle("APE", "#9B7BD8", "octagon"),
    "random": MethodStyle("Random", "#3A7878", "pentagon"),
}
# What a name like "qcfuse+primed" adds: the colour stays that of the method, marker and dash change.
ADDITIONS = {
    "primed": MethodStyle("primed", "", "star-diamond", "dash"),
    "k_shift": MethodStyle("key shift", "", "star-triangle-up", "dot"),
    "primed-mean": MethodStyle("primed mean", "", "diamond-wide", "longdash"),
    "primed-one": MethodStyle("primed, one version", "", "star-square", "longdashdot"),
    "system": MethodStyle("behind system", "", "triangle-right", "5px,10px"),
    "alone": MethodStyle("alone", "", "triangle-left", "dashdot"),
}


class BandStyle(NamedTuple):
    """How a share of a cache or a prompt is named and drawn; the hatch repeats the colour."""

    label: str
    color: str
    hatch: str = ""


# By the names of engine.cache_types; the limit first, the floor second, ours, the paper's, the rivals.
POLICIES = {
    "min": MethodStyle("MIN (sees the future)", GREY, "star", "dot"),
    "lru": MethodStyle("LRU", BLUE, "square", "dash"),
    "sae_g": MethodStyle("SAE-G (ours)", "#B03A28", "hexagram"),
    "saecache": MethodStyle("SAECache (paper)", ORANGE, "diamond"),
    "lpc": MethodStyle("LPC", PINK, "triangle-up", "longdash"),
    "wa": MethodStyle("WA", GREEN, "x", "dashdot"),
    "unicache": MethodStyle("UniCache", SKY, "hexagon", "longdashdot"),
    "lhd": MethodStyle("LHD-like", "#5A4BF0", "bowtie"),
    "s3_fifo": MethodStyle("S3-FIFO", AMBER, "hourglass", "longdash"),
    "slru": MethodStyle("SLRU", "#9B7BD8", "octagon", "dash"),
    "gdsf": MethodStyle("GDSF", "#3A7878", "pentagon", "dashdot"),
    "t_lru": MethodStyle("T-LRU", "#8A6D3B", "triangle-down", "dot"),
    "lfu": MethodStyle("LFU", "#7F7F3F", "cross", "longdashdot"),
    "fifo": MethodStyle("FIFO", "#4C6A92", "square-open", "dot"),
    "sae_g_guard": MethodStyle("SAE-G, guarded", "#D98880", "star-square", "dash"),
}
QUEUES = {
    "evict first": BandStyle("evict first", VERMILLION, "x"),
    "structural": BandStyle("structural", BLUE, ""),
    "chat": BandStyle("chat", ORANGE, "/"),
    "agent": BandStyle("agent", GREEN, "."),
    "blocks": BandStyle("all blocks", BLUE, ""),
    "free": BandStyle("free", "rgba(128,128,128,0.16)", ""),
}
KINDS = {
    "system": BandStyle("system", BLUE, ""),
    "user": BandStyle("user", PINK, "/"),
    "tool output": BandStyle("tool output", GREEN, "."),
    "response": BandStyle("response", ORANGE, "\\"),
    "thinking": BandStyle("thinking", SKY, "x"),
}
MISSES = {
    "hit": BandStyle("hit", GREEN, ""),
    "evicted": BandStyle("evicted", VERMILLION, "x"),
    "changed prefix": BandStyle("changed prefix", AMBER, "/"),
    "cold": BandStyle("cold", GREY, ""),
    "shorter than a block": BandStyle("shorter than a block", SKY, "."),
}
# For names that are not listed: always the same of these, by name.
MORE_COLORS = (SKY, GREEN, PINK, ORANGE, AMBER, BLUE)
MORE_SYMBOLS = ("star-triangle-down", "diamond-tall", "hexagon2", "triangle-ne", "triangle-sw", "triangle-se")
DASHES = ("dash", "dot", "dashdot", "longdash", "longdashdot")


def method_label(name: str) -> str:
    """Returns the name of a method as shown to people; what follows a plus is an addition."""
    base, *additions = name.split("+")
    known = METHODS[base].label if base in METHODS else base
    return " + ".join([known, *(ADDITIONS[a].label if a in ADDITIONS else a.replace("_", " ") for a in additions)])


def method_order(names: Iterable[str]) -> tuple[str, ...]:
    """Returns names in the order people read them: full prefill, direct reuse, ours, the rivals, unknown ones last."""
    known = list(METHODS)

    def place(name: str) -> tuple[int, int, str]:
        base, *additions = name.split("+")
        return (known.index(base) if base in known else len(known), len(additions), name)

    return tuple(sorted(names, key=place))


def method_family(name: str) -> str:
    """Returns the method that additions were made to: `qcfuse` of `qcfuse+primed`."""
    return name.split("+")[0]


def method_color(name: str) -> str:
    """Returns the colour of a method's curve; additions keep that of the method they are made to."""
    family = method_family(name)
    return METHODS[family].color if family in METHODS else _one_of(MORE_COLORS, family)


def method_symbol(name: str) -> str:
    """Returns the marker shape of a method; no two listed names share colour and shape."""
    return _style(name).symbol


def method_dash(name: str) -> str:
    """Returns the dash of a method's curve; no two listed names share colour and dash."""
    return _style(name).dash


def policy_style(name: str) -> MethodStyle:
    """Returns how an eviction policy is named and drawn; one that is not listed always looks the same, by its name."""
    if name in POLICIES:
        return POLICIES[name]
    label = (
        name.replace("saecache_", "SAECache, ").replace("_", " ") if name.startswith("saecache_") else name.replace("sglang_", "SGLang: ")
    )
    return MethodStyle(label, _one_of(MORE_COLORS, name), _one_of(MORE_SYMBOLS, name), _one_of(DASHES, name))


def policy_order(names: Iterable[str]) -> tuple[str, ...]:
    """Returns eviction policies in the order people read them: the limit, LRU, ours, the paper's, the rivals, unknown ones last."""
    known = list(POLICIES)
    return tuple(sorted(names, key=lambda name: (known.index(name) if name in POLICIES else len(known), name)))


def _style(name: str) -> MethodStyle:
    """Returns the entry that says how a name is marked: of its method, of its one addition, or one chosen by its text."""
    family, *additions = name.split("+")
    if family in METHODS and not additions:
        return METHODS[family]
    if len(additions) == 1 and additions[0] in ADDITIONS:
        return ADDITIONS[additions[0]]
    return MethodStyle(name, method_color(name), _one_of(MORE_SYMBOLS, name), _one_of(DASHES, name))


def _one_of(choices: tuple[str, ...], name: str) -> str:
    return choices[zlib.crc32(name.encode()) % len(choices)]


def base_layout(title: str, height: int, subtitle: str = "", **changes: Any) -> go.Layout:
    """Returns a layout with transparent background, our font and a horizontal legend that grows downwards.

    The subtitle may have several lines, as `broken` makes them; `height` is with one line of it.
    """
    lines = subtitle.split("<br>") if subtitle else []
    text = "<br>".join([title, *(f"<span style='font-size:13px'>{line}</span>" for line in lines)])
    extra = 21 * max(0, len(lines) - 1)
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
        height=height + extra,
        margin={"l": 56, "r": 14, "t": (64 if subtitle else 44) + extra, "b": 52},
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
    wrapped = "<br>".join(wrap(reason, 46))
    figure.add_annotation(
        text=wrapped, x=0, y=0.5, xref="paper", yref="paper", xanchor="left", align="left", showarrow=False, font={"size": 14}
    )
    return figure


def broken(text: str) -> str:
    """Returns text in lines that fit a phone, for a subtitle."""
    return "<br>".join(wrap(text, SUBTITLE_CHARS))


def wrap(text: str, width: int) -> list[str]:
    """Returns text as lines of at most `width` characters, longer words on a line of their own."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
