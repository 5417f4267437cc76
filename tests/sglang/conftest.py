"""The lane of the second environment (`make test-sglang`): a real SGLang server on the CPU. Elsewhere nothing here is collected."""

import importlib.metadata
import os
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    _has_plugins = tuple(map(int, importlib.metadata.version("sglang").split(".")[:3])) >= (0, 5, 23)
except importlib.metadata.PackageNotFoundError:
    _has_plugins = False
collect_ignore_glob = [] if _has_plugins else ["test_*.py"]
if _has_plugins:
    sys.path[:0] = [str(folder) for folder in (ROOT, ROOT / "tests" / "sglang") if str(folder) not in sys.path]
    # What the servers get on PYTHONPATH this process needs as well, to make models with a torchvision built for CUDA at hand.
    runpy.run_path(str(ROOT / "engine" / "serving" / "sglang" / "cpu" / "sitecustomize.py"))


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    """The one server that runs at a time; asking for another stops it."""
    from running import Running

    servers = Running(tmp_path_factory)
    yield servers
    servers.stop()
