"""The front matter of a Space's README, checked against what the hub accepts before anything is pushed."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from huggingface_hub import SpaceCard, SpaceCardData, SpaceHardware

from deploy.problem import SpaceProblem

README: Final = "README.md"
MAX_DESCRIPTION: Final = 60
_COLOURS: Final = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
_REPOSITORY: Final = r"[A-Za-z0-9][\w.-]*/[\w.-]+"
_ALWAYS: Final = ("title", "emoji", "colorFrom", "colorTo", "sdk", "app_file", "license", "short_description", "tags")
_WITH_GRADIO: Final = ("sdk_version", "python_version", "header")


class Rule(NamedTuple):
    """Whether a field's value is accepted, and how to say what is."""

    holds: Callable[[Any], bool]
    says: str


def _one_of(*names: str) -> Rule:
    return Rule(lambda value: value in names, f"one of {', '.join(names)}")


def _text(pattern: str, says: str) -> Rule:
    return Rule(lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None, says)


def _texts(pattern: str, says: str) -> Rule:
    single = _text(pattern, says)
    return Rule(lambda value: isinstance(value, list) and bool(value) and all(single.holds(item) for item in value), says)


_SWITCH: Final = Rule(lambda value: isinstance(value, bool), "true or false")
RULES: Final[Mapping[str, Rule]] = {
    "title": _text(r"\S.{0,79}", "a line of 1 to 80 characters"),
    "emoji": Rule(
        lambda value: isinstance(value, str) and 1 <= len(value) <= 8 and not any(ord(sign) < 128 for sign in value), "one emoji"
    ),
    "colorFrom": _one_of(*_COLOURS),
    "colorTo": _one_of(*_COLOURS),
    "sdk": _one_of("gradio", "static", "docker"),
    "sdk_version": _text(r"\d+\.\d+\.\d+", "a whole version such as 6.31.0"),
    "python_version": _text(r"3\.\d+(\.\d+)?", 'a text such as "3.11" or "3.12.12"'),
    "app_file": Rule(lambda value: isinstance(value, str) and _is_inside(value), "a file inside the Space, by its path from the root"),
    "header": _one_of("mini", "default"),
    "fullWidth": _SWITCH,
    "short_description": _text(rf"\S.{{0,{MAX_DESCRIPTION - 1}}}", f"a line of 1 to {MAX_DESCRIPTION} characters"),
    "models": _texts(_REPOSITORY, "a list of ids such as owner/model"),
    "tags": _texts(r"[a-z0-9]+(-[a-z0-9]+)*", "a list of small words joined by hyphens"),
    "license": _one_of("apache-2.0"),
    "pinned": _SWITCH,
    "suggested_hardware": _one_of(*(hardware.value for hardware in SpaceHardware)),
    "startup_duration_timeout": _text(r"\d+(\.\d+)?[smh]", "a time such as 30m"),
    "preload_from_hub": _texts(
        rf"{_REPOSITORY}( [\w./-]+(,[\w./-]+)*( [0-9a-f]{{40}})?)?",
        "a list of lines 'owner/model file,file commit', of which the files and the whole commit may be left out",
    ),
    "disable_embedding": _SWITCH,
}


def write_card(folder: Path, fields: Mapping[str, Any], body: str) -> None:
    """Writes the README of a Space: its front matter, then the text that duplicators read."""
    front = SpaceCardData(**fields).to_yaml()
    (folder / README).write_text(f"---\n{front}\n---\n\n{body}", encoding="utf-8")


def check_card(folder: Path, gradio_version: str) -> dict[str, Any]:
    """Returns the front matter of a folder's README once every field holds. Raises SpaceProblem.

    Args:
        gradio_version: that the requirements pin; the hub installs `sdk_version` itself, and two versions cannot both be had.
    """
    file = folder / README
    if not file.is_file():
        raise SpaceProblem(f"{file} is missing; the hub reads a Space's settings from its front matter.")
    fields = SpaceCard(file.read_text(encoding="utf-8")).data.to_dict()
    needed = (*_ALWAYS, *(_WITH_GRADIO if fields.get("sdk") == "gradio" else ()))
    if missing := [name for name in needed if name not in fields]:
        raise SpaceProblem(f"{file} lacks {', '.join(missing)} in its front matter; the Space needs each of them.")
    for name, value in fields.items():
        if name not in RULES:
            raise SpaceProblem(f"{file} has the field {name!r}, which is none of {', '.join(RULES)}; take it out or correct its name.")
        if not RULES[name].holds(value):
            raise SpaceProblem(f"{file} says {name}: {value!r}; it must be {RULES[name].says}.")
    if not (folder / fields["app_file"]).is_file():
        raise SpaceProblem(f"{file} names app_file: {fields['app_file']!r}, which is not in {folder}; name a file that is.")
    if fields["sdk"] == "gradio" and fields["sdk_version"] != gradio_version:
        raise SpaceProblem(
            f"{file} says sdk_version: {fields['sdk_version']!r} and requirements.txt pins gradio {gradio_version}; "
            "give both the same version, as the hub installs the first and then the second."
        )
    return fields


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts
