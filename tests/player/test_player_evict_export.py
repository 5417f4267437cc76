"""A film of cache runs as one file from a disk, and with texts that want to be markup."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from evict_samples import HOSTILE, made_run, made_set
from player_site import visiting_player

from engine.prefix.cachefile import dump_cache_run, parse_cache_run
from viz.player.export import export_film

pytestmark = pytest.mark.browser


def written(folder, runs, **options):
    path = folder / "film.html"
    path.write_text(export_film(runs, {run.policy: dump_cache_run(run) for run in runs}, **options))
    return path.as_uri()


def test_it_plays_from_disk_with_no_network_and_tours(browser, tmp_path):
    # As slow as it gets, so that it still plays whenever it is looked at.
    slow = {"query": "speed=0.02", "offline": True, "motion": "no-preference"}
    with visiting_player(browser, written(tmp_path, made_set(), title="Made up"), **slow) as visit:
        visit.wait(lambda: 0 < visit.state()["time"] < 6)
        assert visit.text(".fp-question") == "Made up" and visit.state()["tab"] == "evict"
        visit.page.keyboard.press("t")
        for number in range(1, 5):
            visit.drawn()
            assert visit.state()["scene"] == number and not re.search(r"[{}]", visit.text(".fp-sentence"))
            visit.page.keyboard.press("PageDown")
        with visit.page.expect_download() as started:
            visit.page.get_by_text("Run file", exact=True).click()
        run = parse_cache_run(Path(started.value.path()).read_bytes())
        assert run.policy == visit.state()["method"] and visit.problems == []


def test_a_lone_run_is_set_against_the_limit_in_blocks(browser, tmp_path):
    with visiting_player(browser, written(tmp_path, [made_run()]), offline=True) as visit:
        assert "Of the blocks it found 40.0 %; MIN, which sees the future, 80.0 %." in visit.text(".fp-verdict")
        assert visit.problems == []


def test_without_limit_nothing_is_called_regretted(browser, tmp_path):
    with visiting_player(browser, written(tmp_path, [replace(made_run(), limit_hit_blocks=None)]), offline=True) as visit:
        assert "regretted" not in visit.text(".fp-card:visible") and "MIN" not in visit.text(".fp-verdict")
        assert visit.problems == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_hostile_texts_are_shown_as_text(browser, tmp_path, lang):
    texts = {name: HOSTILE for name in ("workload", "predictor", "cost", "created")}
    runs = [replace(made_run(policy), notes=(HOSTILE,), params={HOSTILE: HOSTILE}, **texts) for policy in ("lru", HOSTILE)]
    with visiting_player(browser, written(tmp_path, runs, title=HOSTILE), f"lang={lang}&t=5", offline=True) as visit:
        visit.page.locator("summary:visible").click()
        visit.page.locator(".fp-source").click()
        visit.do(type="method", method=HOSTILE)
        visit.do(type="present")
        assert visit.page.evaluate("() => window.__hit ?? null") is None
        assert "<img src=x onerror" in visit.page.locator(".fp-question").text_content() and visit.problems == []


def test_the_page_holds_the_run_files_and_is_the_same_each_time():
    runs = made_set()
    files = {run.policy: dump_cache_run(run) for run in runs}
    page = export_film(runs, files)
    assert page == export_film(runs, files)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert {name: base64.b64decode(text) for name, text in data["runFiles"].items()} == files
