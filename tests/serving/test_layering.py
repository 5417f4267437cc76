"""The API stays light, and knows nothing of pages."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from launch import ROOT

MODULES = sorted(path for path in (ROOT / "engine" / "serving").glob("*.py") if "sglang" not in path.name)
ALLOWED = ("serving", "chat.types", "library", "errors", "health", "outcomes", "protection", "settings", "types")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_route_asks_the_session_and_knows_values_only(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            assert name.split(".")[0] not in ("gradio", "viz", "torch", "transformers", "kernels"), f"{path.name} imports {name}"
            if name.startswith("engine."):
                assert any(name == f"engine.{a}" or name.startswith(f"engine.{a}.") for a in ALLOWED), f"{path.name} imports {name}"


def test_the_routes_load_nothing_heavy():
    code = "import sys, engine.serving.routes; print([m for m in ('torch', 'transformers', 'gradio', 'plotly') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
