"""Colours mean the same in Python and in the style sheet, and are never red against green."""

import re
from pathlib import Path

from fake_runs import ALL_METHODS

from viz import theme

CSS = (Path(__file__).resolve().parents[2] / "assets" / "fusescope.css").read_text()


def test_style_sheet_repeats_the_palette():
    named = dict(re.findall(r"--fs-(\w+):\s*(#[0-9A-Fa-f]{6})", CSS.split("}")[0]))
    assert named["loaded"] == theme.STATE_COLORS["loaded"] and named["recomputed"] == theme.STATE_COLORS["recomputed"]
    assert named["anchor"] == theme.VERMILLION and named["answer"] == theme.GREEN


def test_style_sheet_and_players_ask_no_other_host():
    players = Path(__file__).resolve().parents[2] / "assets" / "player"
    for text in (CSS, *(path.read_text() for path in players.glob("*.js"))):
        assert not re.search(r"https?://|@import|url\(", text)


def test_players_never_set_markup():
    players = Path(__file__).resolve().parents[2] / "assets" / "player"
    for path in players.glob("*.js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", path.read_text()), path


def luminance(color: str) -> float:
    """Returns the relative luminance of '#rrggbb'."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_method_is_told_apart_by_label_by_colour_and_marker_and_by_colour_and_dash():
    color, symbol, dash = theme.method_color, theme.method_symbol, theme.method_dash
    for sign in (theme.method_label, lambda name: (color(name), symbol(name)), lambda name: (color(name), dash(name))):
        assert len({sign(name) for name in ALL_METHODS}) == len(ALL_METHODS)
    plain = [name for name in ALL_METHODS if "+" not in name]
    assert len({color(name) for name in plain}) == len({symbol(name) for name in plain}) == len(plain)


def test_colours_of_methods_are_seen_on_white_and_on_dark():
    for style in theme.METHODS.values():
        assert 1.05 / (luminance(style.color) + 0.05) > 1.5, style
        assert (luminance(style.color) + 0.05) / (luminance("#0B0F19") + 0.05) > 2, style


def test_unknown_methods_always_look_the_same_and_additions_keep_the_colour():
    for sign in (theme.method_color, theme.method_symbol, theme.method_dash):
        assert sign("toy") == sign("toy") and sign("toy+primed")
    assert theme.method_color("toy+primed") == theme.method_color("toy")
    assert theme.method_color("qcfuse+primed+k_shift") == theme.VERMILLION
    assert theme.method_label("toy+new_thing") == "toy + new thing"


def test_order_of_methods():
    assert theme.method_order(("zeta", "qcfuse", "reuse", "full", "epic")) == ("full", "reuse", "qcfuse", "epic", "zeta")
    assert theme.method_order(("qcfuse_cv", "qcfuse+primed", "qcfuse")) == ("qcfuse", "qcfuse+primed", "qcfuse_cv")
