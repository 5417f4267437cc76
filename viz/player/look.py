"""The page's colours, hatches and names in the player's terms: CSS variables and a table of methods. One source, viz/theme.py."""

from collections.abc import Iterable
from typing import Any

from viz import theme

# Surfaces have no meaning of their own, so each theme has its own; all text on them has a contrast of 4.5 or more.
SURFACES: dict[str, dict[str, str]] = {
    "light": {
        "page": "#FFFFFF",
        "panel": "#FFFFFF",
        "ink": "#14181F",
        "muted": "#4B5563",
        "line": "#D5DAE1",
        "band": "#E6EAF0",
        "band-odd": "#F1F3F7",
        "waiting": "#EFF1F5",
        "faint": "#9AA7B8",
        "soft": "#F3F5F8",
        "playhead": "#14181F",
        "accent": "#005F94",
        "on-accent": "#FFFFFF",
        "live": "#00694D",
        "simulated": "#8A4B00",
    },
    "dark": {
        "page": "#0E1116",
        "panel": "#161B22",
        "ink": "#F2F5F9",
        "muted": "#B6BECB",
        "line": "#333B47",
        "band": "#2A323D",
        "band-odd": "#212832",
        "waiting": "#222933",
        "faint": "#76869B",
        "soft": "#1D242D",
        "playhead": "#F2F5F9",
        "accent": "#7CC7F2",
        "on-accent": "#0E1116",
        "live": "#4FD6AE",
        "simulated": "#F5C710",
    },
    "contrast": {
        "page": "#000000",
        "panel": "#000000",
        "ink": "#FFFFFF",
        "muted": "#FFFFFF",
        "line": "#FFFFFF",
        "band": "#333333",
        "band-odd": "#1A1A1A",
        "waiting": "#1F1F1F",
        "faint": "#BBBBBB",
        "soft": "#1A1A1A",
        "playhead": "#FFFFFF",
        "accent": "#FFFFFF",
        "on-accent": "#000000",
        "live": "#FFFFFF",
        "simulated": "#FFFFFF",
    },
}
# Lengths of line and gap in pixels, by the names plotly has for them.
DASHES = {"solid": (), "dash": (8, 5), "dot": (2, 4), "dashdot": (8, 4, 2, 4), "longdash": (14, 5), "longdashdot": (14, 4, 2, 4)}
# Plain blue is too dark to be seen on black.
ON_DARK = {theme.BLUE: "#3DA5E8"}


def css_variables() -> str:
    """Returns the rules that define --fp-* for the light, the dark and the high-contrast look."""
    light = {**SURFACES["light"], **_meanings({})}
    dark, contrast = ({**SURFACES[name], **_meanings(ON_DARK)} for name in ("dark", "contrast"))
    rules = ((".fp-root", light), ('.fp-root[data-theme="dark"]', dark), ('.fp-root[data-contrast="1"]', contrast))
    return "".join(f"{selector}{{{''.join(f'--fp-{name}:{value};' for name, value in values.items())}}}\n" for selector, values in rules)


def _meanings(changes: dict[str, str]) -> dict[str, str]:
    states = {
        **theme.STATE_COLORS,
        "anchor": theme.VERMILLION,
        "answer": theme.GREEN,
        "flip-a": theme.FLIP_COLORS[0],
        "flip-b": theme.FLIP_COLORS[2],
    }
    stages = {f"stage-{stage}": color for stage, color in theme.STAGE_COLORS.items()}
    bands = {f"b-{name}": style.color for name, style in band_styles().items()}
    return {name: changes.get(color, color) for name, color in {**states, **stages, **bands}.items()}


def band_styles() -> dict[str, theme.BandStyle]:
    """Returns queues, token types and what becomes of a prompt's tokens, by the names the player has for them."""
    named = {**theme.QUEUES, **theme.KINDS, **theme.MISSES}
    return {name.replace("shorter than a block", "shorter").replace(" ", "_"): style for name, style in named.items()}


def looks(names: Iterable[str], policies: Iterable[str] = ()) -> dict[str, Any]:
    """Returns label and colour of methods and eviction policies in the order people read them, hatches, and dashes of policies."""
    styles = {name: theme.policy_style(name) for name in theme.policy_order(set(policies))}
    methods = {name: {"label": theme.method_label(name), "color": theme.method_color(name)} for name in theme.method_order(set(names))}
    return {
        "methods": {**methods, **{name: {"label": style.label, "color": style.color} for name, style in styles.items()}},
        "hatches": dict(theme.STAGE_HATCH),
        "bands": {name: style.hatch for name, style in band_styles().items()},
        "dashes": {name: DASHES[style.dash] for name, style in styles.items()},
    }
