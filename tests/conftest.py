"""Paths and environment of the tests: nothing is fetched, nothing is reported, nothing is cached outside."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
for folder in (ROOT, ROOT / "tests"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

os.environ.update(
    HF_HUB_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    GRADIO_ANALYTICS_ENABLED="False",
    TOKENIZERS_PARALLELISM="false",
)
if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores; set before torch is first imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# Triton's interpreter is settled when triton is first imported, which transformers does by the way. Set to 0, kernels are compiled.
os.environ.setdefault("TRITON_INTERPRET", "1")


def pytest_collection_modifyitems(config, items):
    """Puts tests of pages first, as files are handed out whole and these are the slowest, and gives each a second try: a browser on a
    loaded machine may lose a click. The summary names every test that needed it."""
    items.sort(key=lambda item: "browser" not in item.fixturenames)
    if config.pluginmanager.has_plugin("rerunfailures"):
        for item in items:
            if "browser" in item.fixturenames:
                item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests of pages: a process bears one Playwright. They skip, naming it, where there is none."""
    from launch import CHROMIUM, CHROMIUM_ARGS, WAIT_MS

    if not CHROMIUM.is_file():
        pytest.skip(f"needs Chromium at {CHROMIUM}")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=str(CHROMIUM), args=CHROMIUM_ARGS)
        yield found
        found.close()
