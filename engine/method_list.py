"""Which fusion methods there are and what each does, without importing them: their modules need torch, their sources do not."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "fusion"


@dataclass(frozen=True, slots=True)
class MethodNote:
    """A method or combination on offer. `rule` is the first paragraph of its docstring, on one line; sources stand in it."""

    name: str
    rule: str


def method_names() -> tuple[str, ...]:
    """Returns the names of all fusion methods and of the combinations offered beside them."""
    return tuple(note.name for note in method_notes())


def method_notes() -> tuple[MethodNote, ...]:
    """Returns what the sources declare and, where the package is in use, what was registered beside them."""
    declared = declared_notes()
    known = {note.name for note in declared}
    return (*declared, *(note for note in _registered() if note.name not in known))


@cache
def declared_notes(folder: Path = FOLDER) -> tuple[MethodNote, ...]:
    """Returns what the modules of a folder declare, in the order of their file names, and then the combinations."""
    rules: dict[str, dict[str, str]] = {"METHODS": {}, "WRAPPERS": {}}
    combinations: tuple[str, ...] = ()
    for path in sorted(folder.glob("*.py"), key=lambda path: path.stem):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                for registry, name in _filed_under(node):
                    rules[registry][name] = _first_paragraph(ast.get_docstring(node))
            elif isinstance(node, ast.Assign) and "COMBINATIONS" in [ast.unparse(target) for target in node.targets]:
                combinations = ast.literal_eval(node.value)
    plain = [MethodNote(name, rule) for name, rule in rules["METHODS"].items()]
    return (*plain, *(MethodNote(name, _added(name, rules["WRAPPERS"])) for name in combinations))


def _added(name: str, additions: dict[str, str]) -> str:
    """Returns what the additions of a combination do; its method has a note of its own."""
    return " ".join(additions.get(part, "") for part in name.split("+")[1:])


def _registered() -> Iterator[MethodNote]:
    if "engine.fusion.base" in sys.modules:
        from engine.fusion.base import METHODS

        for name in METHODS.names():
            yield MethodNote(name, _first_paragraph(inspect.getdoc(METHODS.get(name))))


def _filed_under(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yields registry and name of every decorator of the form METHODS.register("name")."""
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="METHODS" | "WRAPPERS" as registry), attr="register"),
                args=[ast.Constant(value=str(name))],
            ):
                yield registry, name


def _first_paragraph(doc: str | None) -> str:
    """Returns the first paragraph of a cleaned docstring on one line, without references to code and its quotes."""
    paragraph = " ".join((doc or "").split("\n\n")[0].split())
    return re.sub(r" \(see `[^`]*`\)|`", "", paragraph)
