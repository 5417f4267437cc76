"""Wording of numbers, and text made safe for plotly."""

import math
import re


def seconds(value: float) -> str:
    """Returns a duration with about three digits: '2.31 s', '84 ms', '0.4 ms'."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f} s"
    if size >= 0.1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.0f} ms" if size >= 0.001 else f"{value * 1e3:.1f} ms"


def size(num_bytes: float) -> str:
    """Returns bytes in decimal units with at most three digits: '102 MB'."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(num_bytes) < 1000 or unit == "GB":
            return f"{num_bytes:.0f} {unit}" if num_bytes >= 10 or unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    raise AssertionError("unreachable")


def percent(share: float) -> str:
    """Returns a share as whole percent, one decimal below 1 %."""
    value = share * 100
    return f"{value:.1f} %" if 0 < value < 1 else f"{value:.0f} %"


def times(factor: float) -> str:
    """Returns a ratio: '2.8×'."""
    return f"{factor:.0f}×" if factor >= 10 else f"{factor:.1f}×"


def shorten(text: str, limit: int) -> str:
    """Returns text on one line of at most `limit` characters, the end cut with an ellipsis."""
    flat = re.sub(r"\s+", " ", text[: 4 * limit + 40]).strip()
    return flat if len(flat) <= limit and len(text) <= 4 * limit + 40 else flat[: limit - 1].rstrip() + "…"


def plain(text: str) -> str:
    """Returns text that plotly draws as it stands.

    Plotly reads a few tags and entities in titles, labels and hover text, and TeX between dollar signs where
    MathJax is loaded; `<`, `>`, `&` become entities and `$` is followed by a zero-width joiner.
    """
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("$", "$\N{WORD JOINER}").replace("\n", "⏎")
