"""The Evict tab in a browser: real recorded runs and real replays of small loads, no model."""

import pytest
from evict_samples import HOSTILE, made_set
from launch import served, visiting
from playwright.sync_api import expect

from engine.cache_types import ReplayRequest
from engine.prefix.cachefile import dump_cache_run, parse_cache_run
from engine.prefix.lab import run_replay
from engine.replays import Replays
from engine.turns import Turns

pytestmark = pytest.mark.browser
LABELS = {"min": "MIN (sees the future)", "lru": "LRU", "sae_g": "SAE-G (ours)", "saecache": "SAECache (paper)", "lpc": "LPC"}


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession") as address:
        yield address


@pytest.fixture
def visit(browser, url):
    with visiting(browser, url) as opened:
        open_evict(opened.page)
        yield opened
        assert opened.problems == []


def open_evict(page):
    page.get_by_role("tab", name="Evict", exact=True).click()
    page.locator("#evict-rate .js-plotly-plot .main-svg").first.wait_for()
    page.locator("#evict-results tbody tr").first.wait_for()


def open_part(page, name):
    page.get_by_role("tab", name=name, exact=True).click()


def shown_rates(page):
    """Returns the table's hit rates of the second half, by policy's label."""
    rows = page.locator("#evict-results tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").first.inner_text() for row in rows}


def replay_at(page, text):
    page.locator("#evict-capacity input, #evict-capacity textarea").first.fill(text)
    page.keyboard.press("Enter")


def test_opens_with_the_recorded_runs_numbers(visit):
    page, recorded = visit.page, Replays(Turns()).recorded("balanced")
    assert shown_rates(page) == {LABELS[run.policy]: f"{100 * run.second_half.hit_tokens:.2f} %" for run in recorded}
    banner = page.locator("#evict-banner").inner_text()
    assert "SIMULATED" in banner and "recorded 20" in banner and "more than under LRU" in banner
    drawn = page.locator("#evict-rate .annotation-text").all_text_contents()
    best = max((run for run in recorded if run.policy != "min"), key=lambda run: run.second_half.hit_tokens)
    assert any(LABELS[best.policy] in text and f"{100 * best.second_half.hit_tokens:.1f} %" in text for text in drawn)
    for name in ("curve", "misses"):
        expect(page.locator(f"#evict-{name} .js-plotly-plot")).to_have_count(1)


def test_the_losing_load_says_so_and_a_typed_capacity_replays_it(visit):
    page = visit.page
    page.locator("#evict-workload input").click()
    page.get_by_role("option", name="Tool use behind one long prompt (SAECache loses here)").click()
    page.locator("#evict-banner").get_by_text("SAECache (paper) loses to LRU").wait_for()
    replay_at(page, "20 %")
    page.locator("#evict-banner").get_by_text("replayed just now").wait_for()
    page.locator("#evict-status").get_by_text("5 replays in").wait_for()
    run = run_replay(ReplayRequest("tool_use", "saecache", 0.2))
    assert shown_rates(page)["SAECache (paper)"] == f"{100 * run.second_half.hit_tokens:.2f} %"
    assert f"{run.capacity_blocks:,} blocks of 16 tokens" in page.locator("#evict-banner").inner_text()


def test_the_slider_replays_at_once_by_keyboard(visit):
    page = visit.page
    page.locator("#evict-workload input").click()
    page.get_by_role("option", name="Tool use").click()
    page.locator("#evict-banner").get_by_text("loses to LRU").wait_for()
    slider = page.locator("#evict-slider input[type=range]")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.locator("#evict-banner").get_by_text("12 % of all").wait_for()
    assert page.locator("#evict-capacity input, #evict-capacity textarea").first.input_value() == "12 %"


@pytest.mark.parametrize(
    ("text", "said"),
    [("0", "at least one block"), ("lots", "is not a number"), ("0.00001 %", "less than one block"), ("100 %", "below 100 %")],
)
def test_a_bad_capacity_is_one_sentence_and_the_numbers_stay(visit, text, said):
    before = shown_rates(visit.page)
    replay_at(visit.page, text)
    error = visit.page.locator("#evict-status .fs-status-error")
    error.get_by_text(said).wait_for()
    assert "\n" not in error.locator(".fs-status-text").inner_text() and shown_rates(visit.page) == before


def test_a_cache_below_one_request_is_pointed_out(visit):
    page = visit.page
    page.locator("#evict-workload input").click()
    page.get_by_role("option", name="Tool use").click()
    page.locator("#evict-banner").get_by_text("loses to LRU").wait_for()
    replay_at(page, "3 blocks")
    page.locator("#evict-banner .fs-notice").get_by_text("The cache of 3 blocks is smaller than the smallest prompt").wait_for()


def test_a_log_of_ones_own_is_replayed_and_a_broken_one_is_one_sentence(visit, tmp_path):
    page = visit.page
    page.locator("#evict-more button").first.click()
    chooser = page.locator("#evict-open-log input[type=file], input[type=file][accept*=csv]").first
    rows = [
        f'{{"timestamp": {i * 1000}, "input_length": 2048, "output_length": 1, "hash_ids": [1, {i % 7 + 2}, {i % 7 + 20}, {i}]}}'
        for i in range(30, 90)
    ]
    good, bad = tmp_path / "mine.jsonl", tmp_path / "torn.jsonl"
    good.write_text("\n".join(rows))
    bad.write_text("\n".join([*rows[10:], rows[0]]))
    chooser.set_input_files(good)
    page.locator("#evict-banner").get_by_text("60 requests").wait_for()
    chooser.set_input_files(bad)
    page.locator("#evict-status .fs-status-error").get_by_text("torn.jsonl, line 51").wait_for()
    assert "60 requests" in page.locator("#evict-banner").inner_text()


def test_the_next_victims_come_with_the_factors_of_their_score(visit):
    page = visit.page
    open_part(page, "Why")
    page.locator("#evict-victims tbody tr").first.wait_for()
    heads = page.locator("#evict-victims thead th").all_inner_texts()
    assert {"α queue", "w type", "p reuse", "idle, s", "Why this one", "What happened"} <= set(heads)
    page.locator("#evict-policy").get_by_text("LRU", exact=True).click()
    page.locator("#evict-victims").get_by_text("longer than any other block that may leave").first.wait_for()
    page.locator("#evict-occupancy").get_by_text("no queues").wait_for()
    page.locator("#evict-weights").get_by_text("This policy learns nothing").wait_for()


def test_a_press_on_the_strip_names_the_request_that_suffered(visit):
    page = visit.page
    open_part(page, "Why")
    cases = page.locator("#evict-regret-cases")
    cases.locator("li").first.wait_for()
    before = cases.locator("strong").inner_text()
    bars = page.locator("#evict-regret .js-plotly-plot .trace.bars").first.locator(".point path")
    box = bars.nth(40).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2)
    page.wait_for_function("(old) => document.querySelector('#evict-regret-cases strong').textContent !== old", arg=before)
    assert "suffered" in cases.locator("li").first.inner_text()
    chosen = cases.locator("strong").inner_text()
    cases.get_by_role("button", name="Next bar").focus()
    page.keyboard.press("Enter")
    assert cases.locator("strong").inner_text() != chosen


def test_a_run_is_taken_away_and_opened_again(visit, tmp_path):
    page = visit.page
    open_part(page, "Why")
    with page.expect_download() as download:
        page.locator("#evict-download").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    run = parse_cache_run(path.read_bytes())
    assert run.policy == "saecache" and path.name == f"fusescope-balanced-saecache-{run.capacity_blocks}-0.cache.json.gz"
    page.locator("#evict-more button").first.click()
    page.locator("#evict-open-runs input[type=file], input[type=file][multiple]").first.set_input_files(path)
    page.locator("#evict-banner").get_by_text("from a file of").wait_for()
    page.locator("#evict-victims").get_by_text("The file holds no reasons").wait_for()


def test_the_game_is_played_by_keyboard_and_compares_all_four(visit):
    page = visit.page
    open_part(page, "Game")
    page.locator(".fs-evict-card").first.wait_for()
    page.locator(".fs-evict-card").first.focus()
    for number in range(10):
        page.locator("#evict-game h3").get_by_text(f"Eviction {number + 1} of 10").wait_for()
        page.keyboard.press(str(number % 5 + 1))
    game = Replays(Turns()).game("balanced", 0.05, 0)
    mine = sum(moment.cards[i % 5].next_request >= 0 for i, moment in enumerate(game.moments))
    scores = [line.locator("span").inner_text() for line in page.locator(".fs-evict-score").all()]
    assert scores == [f"{lost} lost" for lost in (mine, *(game.num_lost(player) for player in ("lru", "saecache", "min")))]
    expect(page.locator("#evict-game tbody tr")).to_have_count(10)
    page.get_by_role("button", name="Other blocks").click()
    page.locator("#evict-game").get_by_text("seed 1").wait_for()


def test_text_of_a_hostile_file_stays_text(visit, tmp_path):
    page = visit.page
    page.locator("#evict-more button").first.click()
    path = tmp_path / "hostile.cache.json.gz"
    path.write_bytes(dump_cache_run(made_set(workload=HOSTILE, notes=(HOSTILE,), policy=HOSTILE)[1]))
    page.locator("#evict-open-runs input[type=file], input[type=file][multiple]").first.set_input_files(path)
    page.locator("#evict-banner").get_by_text("<img src=x").first.wait_for()
    open_part(page, "Why")
    page.locator("#evict-occupancy .js-plotly-plot .main-svg").first.wait_for()
    expect(page.evaluate("window.__hit") is None and page.locator("#evict-banner img, #evict-how img, #evict-results img")).to_have_count(0)


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1920, "light")])
def test_no_part_scrolls_sideways(browser, url, width, theme):
    with visiting(browser, url, width, 844 if width < 600 else 1080, theme=theme) as visit:
        open_evict(visit.page)
        for name, part in (("Who wins", "#evict-misses .main-svg"), ("Why", "#evict-ages .main-svg"), ("Game", ".fs-evict-card")):
            open_part(visit.page, name)
            visit.page.locator(part).first.wait_for()
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        assert visit.problems == []
