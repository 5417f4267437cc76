"""The product itself in a browser: `python app.py` with the bundled model, one scenario run, the numbers seen."""

import json
import os
import sys
import time
import urllib.request

import pytest
from launch import ROOT, free_port, served_command, visiting
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The app as a newcomer starts it, its cache in a folder of its own."""
    port = free_port()
    env = {
        "PORT": str(port),
        "FUSESCOPE_CACHE": os.environ.get("FUSESCOPE_CACHE") or str(tmp_path_factory.mktemp("cache")),
    }
    with served_command([sys.executable, str(ROOT / "app.py")], f"http://127.0.0.1:{port}/", env) as address:
        yield address


def test_a_stranger_runs_a_scenario_and_sees_the_numbers(browser, url):
    with visiting(browser, url) as visit:
        page = visit.page
        page.locator("#fuse-banner .fs-badge-replay").wait_for()
        page.locator("#fuse-run").click()
        page.locator("#fuse-banner .fs-badge-live").wait_for(timeout=600_000)
        page.wait_for_function("document.querySelectorAll('#fuse-cards .fs-card').length === 3")
        banner = page.locator("#fuse-banner").inner_text()
        assert "SmolLM2-135M-Instruct" in banner and "QCFuse recomputed 30" in banner and "instead of" in banner
        for name in ("map", "attention", "ttft", "timeline", "kv"):
            expect(page.locator(f"#fuse-{name} .js-plotly-plot")).to_have_count(1)
        assert page.locator("#fuse-text .fs-recomputed").count() > 500
        assert "KV loaded" in page.locator("#fuse-counts").inner_text()
        assert "measured just now" in visit.status()
        assert visit.problems == []


def test_a_bad_request_is_a_sentence_and_the_next_run_works(url):
    import gradio_client

    client = gradio_client.Client(url, verbose=False)
    for question, ratio, words in ((" ", 0.3, "question is empty"), ("Why?", 7.0, "ratio is 7.0")):
        with pytest.raises(gradio_client.exceptions.AppError, match=words):
            client.predict("harbour-museum", question, ratio, "full", api_name="/run")
    answer = client.predict("harbour-museum", "Which ship is the oldest?", 0.1, "reuse,qcfuse", api_name="/run")
    numbers = answer if isinstance(answer, dict) else json.loads(answer)
    assert set(numbers["methods"]) == {"reuse", "qcfuse"} and numbers["mode"] == "live"
    assert numbers["methods"]["qcfuse"]["num_recomputed"] == int(0.1 * numbers["num_doc_tokens"])


def test_the_page_answers_soon_after_the_start(tmp_path):
    port, begun = free_port(), time.monotonic()
    env = {"PORT": str(port), "FUSESCOPE_CACHE": str(tmp_path), "FUSESCOPE_MODEL": str(tmp_path / "no-such-model")}
    with served_command([sys.executable, str(ROOT / "app.py")], f"http://127.0.0.1:{port}/", env) as address:
        # No bound on the time, which depends on the machine: the page must simply not wait for a model, here a missing one.
        assert time.monotonic() - begun < 90
        with urllib.request.urlopen(address, timeout=30) as page:
            assert b"Fusescope" in page.read()
