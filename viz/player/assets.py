"""What every shell of the player needs beside a run: strings, tour, style and names. Reads files, keeps nothing."""

import json
from collections.abc import Iterable
from typing import Any

from viz.player.bundle import PLAYER_DIR
from viz.player.look import css_variables, looks


def style() -> str:
    """Returns the player's CSS with its colours."""
    return css_variables() + (PLAYER_DIR / "player.css").read_text()


def common_options(methods: Iterable[str], policies: Iterable[str] = (), tours: Iterable[str] = ("tour",)) -> dict[str, Any]:
    """Returns the options of `mount` that are the same for every run; JSON-able.

    Args:
        tours: files of scenes, without their ending, one after another.
    """
    return {
        "looks": looks(methods, policies),
        "strings": json.loads((PLAYER_DIR / "strings.json").read_text()),
        "tour": [scene for name in tours for scene in json.loads((PLAYER_DIR / f"{name}.json").read_text())],
    }
