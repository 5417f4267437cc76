"""Imports go one way (design, section 1), and nothing that must stay light pulls in what is heavy."""

import ast
import functools
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {"torch", "transformers", "gradio", "plotly", "triton", "sglang"}
# Command-line entry points compose the engine as app.py does; they live beside what they are about.
ENTRIES = {
    "engine/model/calibrate.py",
    "engine/model/choose_primer.py",
    "engine/model/fit_heads.py",
    "engine/prefix/train_predictor.py",
    "viz/player/static.py",
}

LAYERS = {
    "engine/types.py": {"engine.errors"},
    "engine/errors.py": set(),
    "engine/registry.py": {"engine.errors"},
    "engine/model": {"engine.model", "engine.errors", "engine.settings", "engine.registry", "engine.types", "kernels"},
    "engine/chunks": {"engine.chunks", "engine.model", "engine.errors", "engine.types", "engine.recorder", "kernels"},
    "engine/fusion": {
        *(
            "engine.fusion",
            "engine.chunks",
            "engine.model",
            "engine.errors",
            "engine.types",
            "engine.registry",
            "engine.recorder",
            "kernels",
        ),
    },
    "engine/chat": {
        *("engine.chat", "engine.chunks", "engine.compare", "engine.errors", "engine.fusion", "engine.model", "engine.outcomes"),
        *("engine.prefix", "engine.provenance", "engine.recorder", "engine.runtime", "engine.turns", "engine.types"),
    },
    "engine/library": {
        *("engine.library", "engine.chat.types", "engine.errors", "engine.model.prompt", "engine.runtime", "engine.scenarios"),
        *("engine.settings", "engine.streaming", "engine.turns", "engine.types"),
    },
    "kernels": {"kernels"},
    "engine/results.py": {"engine.types"},
    "engine/resultsfile.py": {"engine.errors", "engine.results"},
    "engine/claims": {"engine.claims", "engine.results", "engine.types", "engine.model.calibration"},
    "engine/cache_types.py": {"engine.errors"},
    "viz/figures": {"engine.types", "engine.cache_types", "engine.results", "viz.theme", "viz.figures"},
    "viz/player": {
        *("engine.types", "engine.cache_types", "engine.errors", "engine.results", "engine.runfile", "viz.theme", "viz.player"),
    },
}


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Returns the modules a file imports, wherever in it; several rules ask about each file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {node.module or ""}
            found |= {f"{node.module}.{alias.name}" for alias in node.names} if node.module in ("engine", "viz", "kernels") else set()
    return frozenset(found - {"engine", "viz"})


def within(name: str, allowed: set[str]) -> bool:
    return any(name == a or name.startswith(a + ".") for a in allowed)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_what_stands_below_it(layer):
    paths = [ROOT / layer] if layer.endswith(".py") else sources(layer)
    assert paths
    for path in paths:
        if str(path.relative_to(ROOT)) in ENTRIES:
            continue
        ours = {name for name in imports(path) if name.split(".")[0] in ("engine", "viz", "kernels", "app")}
        wrong = {name for name in ours if not within(name, LAYERS[layer])}
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


def test_gradio_stays_in_the_panels_and_plotly_in_viz():
    for path in sources("engine", "kernels", "viz"):
        top = {name.split(".")[0] for name in imports(path)}
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith("viz/panels"):
            assert "gradio" not in top, place
        if not place.startswith("viz"):
            assert "plotly" not in top, place
        assert "viz" not in top or place.startswith("viz"), place


def test_engine_never_imports_the_app():
    for path in sources("engine", "kernels"):
        assert not {name for name in imports(path) if name.split(".")[0] in ("viz", "app")}, path


def test_methods_do_not_import_each_other():
    tools = {"base", "plan", "probe", "full_view", "deviation", "wrapper"}
    shared = {*tools, "pipeline", "batch", "shift", "decode", "drafted", "compose", "__init__"}
    for path in sources("engine/fusion"):
        if path.stem not in shared:
            used = {name.removeprefix("engine.fusion.").split(".")[0] for name in imports(path) if name.startswith("engine.fusion.")}
            assert used <= tools, f"{path.stem} imports {used}"


LIGHT = [
    "engine.types",
    "engine.session",
    "engine.scenarios",
    "engine.runfile",
    "engine.claims",
    "engine.resultsfile",
    "engine.cache_types",
    "engine.chat.chats",
    "engine.check",
    "engine.library.service",
    "engine.prefix.lab",
    "engine.replays",
    "kernels",
]


@pytest.mark.parametrize("module", LIGHT)
def test_light_modules_import_nothing_heavy(module):
    code = f"import sys, {module}; print([m for m in {sorted(HEAVY)!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_datasets_folder_does_not_shadow_the_library():
    assert not list((ROOT / "datasets").rglob("*.py"))
    code = "import datasets; print(datasets.__version__)"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr


def test_the_hub_package_called_kernels_is_not_installed():
    names = {dist.metadata["Name"] for dist in importlib.metadata.distributions()}
    assert "kernels" not in names, "the Hugging Face package 'kernels' shadows ours in transformers: pip uninstall kernels"
    code = "import transformers.models.qwen2.modeling_qwen2"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr


def test_modules_stay_small():
    for path in [*sources("engine", "kernels", "viz"), ROOT / "app.py"]:
        assert len(path.read_text().splitlines()) <= 300, path
