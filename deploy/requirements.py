"""A Space's own requirements: the project's, pinned to the versions that are installed and tested here, in plain lines."""

import importlib.metadata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from deploy.problem import SpaceProblem

FILE: Final = "requirements.txt"
# The hub installs Gradio with these, in one step with the requirements: what they ask for has to agree with every pin.
HUB_EXTRAS: Final[Mapping[str, frozenset[str]]] = {"gradio": frozenset(("mcp", "oauth"))}
# The app starts and serves without these: it looks for them and says where they are missing.
OPTIONAL: Final[Mapping[str, str]] = {
    "sglang": "offers two more policies on the Evict tab; it brings packages that a free machine has no room for",
    "triton": "comes with torch where torch is built for a GPU",
    "pyzmq": "is what sglang imports",
    "spaces": "is installed by the hub on every Gradio Space",
}


def read_requirements(file: Path) -> list[Requirement]:
    """Returns the requirements of a file in plain form, comments left out. Raises SpaceProblem naming the line that is not plain."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        where = f"{file}, line {number}, {text!r}"
        if text.startswith("-"):
            raise SpaceProblem(
                f"{where}: a Space is built from this file alone, before its other files are there; write plain requirements."
            )
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise SpaceProblem(f"{where}: is not a requirement ({str(error).splitlines()[0]}); write 'name==version'.") from error
        if requirement.url:
            raise SpaceProblem(f"{where}: names an address; write 'name==version', so that the hub's package index serves it.")
        found.append(requirement)
    return found


def pinned(requirements: Iterable[Requirement], chosen: Mapping[str, str] | None = None) -> list[str]:
    """Returns one line 'name==version' for each requirement that is not optional: the version installed here, or the chosen one.

    Raises SpaceProblem where it is not installed, or where the version is not one that the project allows.
    """
    lines = []
    for requirement in requirements:
        name = canonicalize_name(requirement.name)
        if name in OPTIONAL:
            continue
        version = (chosen or {}).get(name) or _installed(name)
        if not requirement.specifier.contains(version):
            raise SpaceProblem(f"{name} {version} would be pinned, and {FILE} allows {requirement.specifier}; run `make setup`.")
        names = requirement.extras | HUB_EXTRAS.get(name, frozenset())
        extras = f"[{','.join(sorted(names))}]" if names else ""
        lines.append(f"{name}{extras}=={version}")
    return sorted(lines)


def check_requirements(folder: Path) -> dict[str, str]:
    """Returns the version of every distribution that a Space's requirements pin. Raises SpaceProblem where one is not pinned."""
    versions = {}
    for requirement in read_requirements(folder / FILE):
        pins = [spec.version for spec in requirement.specifier if spec.operator == "==" and "*" not in spec.version]
        if len(pins) != 1 or len(requirement.specifier) != 1:
            raise SpaceProblem(
                f"{folder / FILE} has {str(requirement)!r}; pin it as 'name==version', so that a rebuild gives the same Space."
            )
        versions[canonicalize_name(requirement.name)] = pins[0]
    if "gradio" not in versions:
        raise SpaceProblem(f"{folder / FILE} does not name gradio; pin it to the front matter's sdk_version.")
    for name, extras in HUB_EXTRAS.items():
        _check_agreement(name, extras, versions)
    return versions


def _check_agreement(name: str, extras: Iterable[str], versions: Mapping[str, str]) -> None:
    """Raises SpaceProblem where a distribution that is installed here, with its extras, asks for other versions than are pinned."""
    for text in importlib.metadata.requires(name) or ():
        wanted = Requirement(text)
        applies = wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras))
        version = versions.get(canonicalize_name(wanted.name))
        if applies and version is not None and not wanted.specifier.contains(version):
            raise SpaceProblem(
                f"{FILE} pins {wanted.name} {version}, and {name}[{','.join(sorted(extras))}], which the hub installs beside it, asks for "
                f"{wanted.specifier}; choose a version within that in deploy/targets.py."
            )


def _installed(name: str) -> str:
    try:
        # A local part such as +cpu names a build, which no index offers under the plain name.
        return Version(importlib.metadata.version(name)).public
    except importlib.metadata.PackageNotFoundError:
        raise SpaceProblem(f"{name} of {FILE} is not installed here, so that no tested version can be pinned; run `make setup`.") from None
