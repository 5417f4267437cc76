"""Whether everything that a folder's Python files import is pinned by its requirements."""

import ast
import sys
from collections import deque
from collections.abc import Collection, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from deploy.problem import SpaceProblem
from deploy.requirements import OPTIONAL


def imported_modules(folder: Path) -> dict[str, Path]:
    """Returns the top-level modules that the files import from elsewhere, wherever in them, each with the first file that does."""
    own = {path.stem if path.suffix == ".py" else path.name for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"}
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.py")):
        for name in _imports(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            # The library of this name wins over the folder of data, which has no __init__.py.
            if name not in sys.stdlib_module_names and (name not in own or name == "datasets"):
                found.setdefault(name, path)
    return found


def check_imports(folder: Path, pinned: Collection[str]) -> int:
    """Returns how many modules are imported. Raises SpaceProblem naming one that no pinned distribution holds."""
    modules, holders = imported_modules(folder), packages_distributions()
    for module, file in modules.items():
        names = {canonicalize_name(name) for name in holders.get(module, [module])}
        if not names & {*pinned, *OPTIONAL}:
            raise SpaceProblem(
                f"{file} imports {module!r}, which no line of requirements.txt provides; add {' or '.join(sorted(names))}, or leave it out."
            )
    return len(modules)


def _imports(tree: ast.AST) -> Iterator[str]:
    nodes = deque([tree])
    while nodes:
        node = nodes.popleft()
        # Most of a tree is expressions, which hold no import.
        nodes.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]
