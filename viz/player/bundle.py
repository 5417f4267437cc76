"""The player's ES modules as one script, for places that cannot load modules: a file opened from disk, the page's components.

Reads the few forms of import and export that the player uses, and refuses others by name. Modules share one scope where their names allow
it, so that no import or export is left; one that has a private name of another's stands in a scope of its own.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PLAYER_DIR: Final = Path(__file__).resolve().parents[2] / "assets" / "player"
_IMPORT: Final = re.compile(r'^import (?:\{([^}]*)\}|\* as (\w+)) from "(\.[^"]+)";\n', re.M)
_EXPORT: Final = re.compile(r"^export (?:async )?(?:const|function|class) (\w+)", re.M)
_LIST: Final = re.compile(r"^export \{([^}]*)\};\n", re.M)
_TOP: Final = re.compile(r"^(?:export )?(?:(?:async )?function\*?|class) (\w+)|^(?:export )?(?:const|let) ([^\n]+)", re.M)
# Names of the scope that a bundle stands in.
_AROUND: Final = frozenset({"element", "props", "trigger", "server", "upload", "watch", "options", "files", "addressOf", "filesOf"})
# Text that must stay as it is, and blanks that no reader of the language needs.
_STRING: Final = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_REGEX: Final = r"(?:(?<=return )|(?<![\w)\]])(?<![\w)\]] ))/(?![/*])(?:[^/\\\[]|\\.|\[(?:[^\]\\]|\\.)*\])+/[a-z]*u\b"
# A template that holds no other one.
_TEMPLATE: Final = r"`(?:[^`\\$]|\\.|\$(?!\{)|\$\{[^`{}]*\})*`"
_QUOTED: Final = re.compile(f"({_STRING}|{_TEMPLATE}|{_REGEX})")
# What is computed within a template, without strings.
_PLACE: Final = re.compile(r"\$\{[^`{}\"']*\}")
_BLANKS: Final = re.compile(r" ?(=>|\.\.\.|[=!]==?|[<>+\-*/]=|&&|\|\||\?\?|[=<>?:;,{}()\[\]*|&]) ?|(?<![+\-*/]) ?([+\-/%]) (?![+\-*/])")


def bundle(entry: str = "player.js", folder: Path = PLAYER_DIR) -> str:
    """Returns a script that defines what `entry` exports as constants of its own scope."""
    paths = _in_order((folder / entry).resolve())
    exports = {path: _exports(path.read_text()) for path in paths}
    public = [name for names in exports.values() for name in names]
    twice = {name for name in public if public.count(name) > 1 or name in _AROUND}
    assert not twice, f"a second thing is called {sorted(twice)}; exports need names of their own"
    taken, parts, known = {*public, *_AROUND}, ['"use strict";'], set()
    for path in paths:
        body, objects = _body(path, exports)
        spaces = "".join(line for line in objects if line not in known)
        private = _top_names(spaces + body) - set(exports[path])
        if private & taken:
            names = ", ".join(exports[path])
            parts.append(f"const {{ {names} }} = (() => {{\n{spaces}{body}return {{ {names} }};\n}})();")
        else:
            taken |= private
            known |= set(objects)
            parts.append(spaces + body)
    return _slim("\n".join(parts))


def module_files(folder: Path = PLAYER_DIR) -> list[Path]:
    """Returns the files that `player.js` is made of."""
    return _in_order((folder / "player.js").resolve())


def _in_order(entry: Path) -> list[Path]:
    """Returns the modules with every one behind those it imports."""
    done: list[Path] = []

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        assert path not in above, f"{path.name} imports itself by way of {[p.name for p in above]}"
        if path in done:
            return
        for _, _, target in _IMPORT.findall(path.read_text()):
            visit((path.parent / target).resolve(), (*above, path))
        done.append(path)

    visit(entry, ())
    return done


def _body(path: Path, exports: dict[Path, list[str]]) -> tuple[str, list[str]]:
    """Returns a module without its imports and exports, and the objects that each `import * as` stands for."""
    text = path.read_text()
    whole = [(name, (path.parent / target).resolve()) for _, name, target in _IMPORT.findall(text) if name]
    objects = [f"const {name} = {{ {', '.join(exports[source])} }};\n" for name, source in whole]
    text = _LIST.sub("", _IMPORT.sub("", text))
    text = re.sub(r"^export (?=(?:async )?(?:const|function|class) )", "", text, flags=re.M)
    assert not re.search(r"^(import|export)\b", text, re.M), f"{path.name} has a form of import or export that is not read here"
    return text, objects


def _exports(text: str) -> list[str]:
    return _EXPORT.findall(text)


def _top_names(text: str) -> set[str]:
    """Returns the names a module declares outside every bracket; one too many only costs a scope."""
    found = set()
    for name, declared in _TOP.findall(text):
        found |= {name} if name else set(_declared(declared))
    return found


def _declared(text: str) -> Iterable[str]:
    """Returns the names in what follows `const` on one line: the first one, and those behind a comma outside every bracket."""
    depth, expected = 0, True
    for token in re.findall(r"\"(?:[^\"\\]|\\.)*\"|[\w$]+|[^\w$]", text):
        if expected and re.fullmatch(r"[\w$]+", token):
            yield token
        expected = (expected and token.isspace()) or (token == "," and not depth)
        depth += (token in "([{") - (token in ")]}")


def _slim(script: str) -> str:
    """Returns a script without comments on lines of their own and blanks that only people need; what stands outside begins a line."""
    assert all(line.count("`") % 2 == 0 for line in script.splitlines()), "a template over several lines would lose its indentation"
    slim = ""
    for line in script.splitlines():
        text = line.strip()
        if text and not text.startswith("//"):
            closes = text[0] in "}])"
            slim = slim.removesuffix(",") if closes else slim
            goes_on = closes or not slim or (slim.endswith((",", "{", "(", "[", ";")) and line[0].isspace())
            slim += ("" if goes_on else "\n") + _tight(text)
    return slim + "\n"


def _tight(line: str) -> str:
    """Returns a line without needless blanks; strings, templates and regular expressions, which all end in u, stay as they are."""
    first, last = line.find("`"), line.rfind("`")
    if any("`" in part for part in _QUOTED.split(line)[::2]):
        return _without_blanks(line[:first]) + line[first : last + 1] + _without_blanks(line[last + 1 :])
    return _without_blanks(line)


def _without_blanks(code: str) -> str:
    parts = _QUOTED.split(code)
    return "".join(_PLACE.sub(lambda m: _squeezed(m[0]), part) if i % 2 else _squeezed(part) for i, part in enumerate(parts))


def _squeezed(code: str) -> str:
    return _BLANKS.sub(lambda m: m[1] or m[2], code)
