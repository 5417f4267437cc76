"""The product itself in a browser: `python app.py` with the bundled model, one scenario run, the numbers seen."""

import contextlib
import json
import os
import sys
import urllib.request

import pytest
from launch import ROOT, free_port, served_command, visiting
from playwright.sync_api import expect

from engine.model.tiny import byte_tokenizer, tiny_hf_model

pytestmark = pytest.mark.browser


@contextlib.contextmanager
def app(cache, **env):
    """Starts the app as a newcomer does."""
    port = free_port()
    env |= {"PORT": str(port), "FUSESCOPE_CACHE": str(cache)}
    with served_command([sys.executable, str(ROOT / "app.py")], f"http://127.0.0.1:{port}/", env) as address:
        yield address


@pytest.fixture
def url(tmp_path):
    """The app with the bundled model, its cache in a folder of its own."""
    with app(os.environ.get("FUSESCOPE_CACHE") or tmp_path) as address:
        yield address


@pytest.fixture
def tiny_url(tmp_path):
    """The app with a tiny model, whose context holds a whole scenario in bytes."""
    model = tiny_hf_model("llama")
    model.config.max_position_embeddings = 32_768
    model.save_pretrained(tmp_path / "model")
    byte_tokenizer().save_pretrained(tmp_path / "model")
    with app(tmp_path, FUSESCOPE_MODEL=str(tmp_path / "model")) as address:
        yield address


def test_a_stranger_runs_a_scenario_and_sees_the_numbers(browser, url):
    with visiting(browser, url) as visit:
        page, banner = visit.page, visit.page.locator("#fuse-banner")
        banner.locator(".fs-badge-replay").wait_for()
        # A third of the chunks, each method once and a short answer: the numbers are the model's own either way.
        boxes = page.locator("#fuse-chunks input[type=checkbox]")
        num_chunks = boxes.count()
        num_kept = num_chunks // 3
        for number in range(num_kept, num_chunks):
            boxes.nth(number).press("Space")
        expect(page.locator("#fuse-chunks")).to_contain_text(f"{num_kept} of {num_chunks}")
        page.locator("#fuse-advanced").get_by_role("button", name="Advanced").click()
        for name, value in (("repeats", "1"), ("length", "8")):
            field = page.locator(f"#fuse-{name} input[type=number]")
            field.fill(value)
            field.press("Tab")
            expect(field).to_have_value(value)
        page.locator("#fuse-run").click()
        banner.locator(".fs-badge-live").wait_for(timeout=600_000)
        expect(page.locator("#fuse-cards .fs-card")).to_have_count(3)
        for words in ("SmolLM2-135M-Instruct", "QCFuse recomputed 30", "instead of"):
            expect(banner).to_contain_text(words)
        for name in ("map", "attention", "ttft", "timeline", "kv"):
            expect(page.locator(f"#fuse-{name} .js-plotly-plot")).to_have_count(1)
        page.wait_for_function("() => document.querySelectorAll('#fuse-text .fs-recomputed').length > 150")
        expect(page.locator("#fuse-counts")).to_contain_text("KV loaded")
        expect(page.locator("#fuse-status")).to_contain_text("measured just now")
        assert visit.problems == []


def test_a_bad_request_is_a_sentence_and_the_next_run_works(tiny_url):
    import gradio_client

    client = gradio_client.Client(tiny_url, verbose=False)
    for question, ratio, words in ((" ", 0.3, "question is empty"), ("Why?", 7.0, "ratio is 7.0")):
        with pytest.raises(gradio_client.exceptions.AppError, match=words):
            client.predict("harbour-museum", question, ratio, "full", api_name="/run")
    answer = client.predict("harbour-museum", "Which ship is the oldest?", 0.1, "reuse,qcfuse", api_name="/run")
    numbers = answer if isinstance(answer, dict) else json.loads(answer)
    assert set(numbers["methods"]) == {"reuse", "qcfuse"} and numbers["mode"] == "live"
    assert numbers["methods"]["qcfuse"]["num_recomputed"] == int(0.1 * numbers["num_doc_tokens"])


def test_the_page_answers_without_waiting_for_its_model(tmp_path):
    port = free_port()
    # A model that never comes: the page is there all the same.
    env = {"PORT": str(port), "FUSESCOPE_CACHE": str(tmp_path), "FUSESCOPE_MODEL": str(tmp_path / "no-such-model")}
    with (
        served_command([sys.executable, str(ROOT / "app.py")], f"http://127.0.0.1:{port}/", env) as address,
        urllib.request.urlopen(address) as page,
    ):
        assert b"Fusescope" in page.read()
