"""Assembles the three Spaces' folders and checks each: what is pushed, and nothing else.

As a program: python -m deploy.space [folder, default build]
"""

import importlib.metadata
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from packaging.version import Version

from deploy import card, files, imports, requirements
from deploy.problem import SpaceProblem
from deploy.targets import Target, targets
from viz.player.static import write_site

ROOT: Final = Path(__file__).resolve().parent.parent
TEXTS: Final = Path(__file__).resolve().parent / "readme"
FIRST: Final = "pre-requirements.txt"


def assemble(target: Target, build: Path, root: Path = ROOT) -> Path:
    """Writes one Space's folder below `build`, in place of an older one, checks it and returns it. Raises SpaceProblem."""
    folder = build / target.folder
    files.make_room(folder)
    fields = dict(target.card)
    if target.is_app:
        names = files.files_to_push(root)
        files.copy_files(root, names, folder)
        lines = requirements.pinned(requirements.read_requirements(root / requirements.FILE), target.chosen)
        _write_lines(folder / requirements.FILE, lines)
        if target.first:
            _write_lines(folder / FIRST, target.first)
        fields["sdk_version"] = requirements.check_requirements(folder)["gradio"]
    else:
        write_site(folder)
        names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    files.mark_binaries(folder)
    card.write_card(folder, fields, "".join((TEXTS / name).read_text(encoding="utf-8") for name in target.texts))
    check(folder, names)
    return folder


def check(folder: Path, names: Sequence[str] | None = None) -> str:
    """Returns one line on a Space's folder that may be pushed. Raises SpaceProblem.

    Args:
        names: files that belong there beside those written for the hub; None for any.
    """
    own = (card.README, ".gitattributes", requirements.FILE, FIRST)
    num_files, size_bytes = files.check_files(folder, None if names is None else (*names, *own))
    line = f"{folder}: {num_files} files, {size_bytes / 1e6:.1f} MB"
    if not (folder / requirements.FILE).is_file():
        card.check_card(folder, gradio_version="")
        return line
    versions = requirements.check_requirements(folder)
    card.check_card(folder, versions["gradio"])
    num_modules = imports.check_imports(folder, versions)
    return f"{line}, {len(versions)} requirements for {num_modules} imported packages, gradio {versions['gradio']}"


def _write_lines(file: Path, lines: Sequence[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main(build: str = "build") -> int:
    """Assembles all Spaces and says what each holds; returns the exit code."""
    try:
        for target in targets(Version(importlib.metadata.version("torch")).public):
            print(check(assemble(target, Path(build))), flush=True)
    except SpaceProblem as problem:
        print(f"space: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
