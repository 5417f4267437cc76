"""Colours mean the same in Python and in the style sheet, and are never red against green."""

import re
from pathlib import Path

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


def test_order_of_methods():
    assert theme.method_order(("zeta", "qcfuse", "reuse", "full", "epic")) == ("full", "reuse", "qcfuse", "epic", "zeta")
