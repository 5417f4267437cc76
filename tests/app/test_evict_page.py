"""The Evict tab in a browser: real recorded runs and real replays of small loads, no model."""

import time

import pytest
from evict_samples import HOSTILE, made_set
from launch import WAIT_MS, visiting
from playwright.sync_api import expect

from engine.cache_types import ReplayRequest
from engine.prefix.cachefile import dump_cache_run, parse_cache_run
from engine.prefix.lab import run_replay
from engine.replays import Replays
from engine.turns import Turns

pytestmark = pytest.mark.browser
LABELS = {"min": "MIN (sees the future)", "lru": "LRU", "sae_g": "SAE-G (ours)", "saecache": "SAECache (paper)", "lpc": "LPC"}
OPENED = {"query": "tab=evict", "ready": "#evict-results tbody tr"}
PARTS = {"Who wins": "#evict-misses .main-svg", "Why": "#evict-ages .main-svg", "Game": ".fs-evict-card"}


@pytest.fixture(scope="module")
def recorded():
    return Replays(Turns()).recorded("balanced")


@pytest.fixture(scope="module")
def opened(browser, plain_url):
    with visiting(browser, plain_url, **OPENED) as visit:
        yield visit


@pytest.fixture(scope="module")
def opened_to_change(browser, plain_url):
    with visiting(browser, plain_url, **OPENED) as visit:
        visit.page.locator("#evict-more button").first.click()
        yield visit


@pytest.fixture
def visit(opened):
    """A page that shows the recorded runs, for tests that leave it so."""
    yield opened
    assert opened.problems == []


@pytest.fixture
def changing(opened_to_change):
    """A page for tests that bring what is shown, whatever was shown before."""
    yield opened_to_change
    assert opened_to_change.problems == []


def open_part(page, name):
    page.get_by_role("tab", name=name, exact=True).click()


def look_into(page, name):
    """Opens Why for a policy and waits for its pictures and for its next victims."""
    open_part(page, "Why")
    page.locator("#evict-policy").get_by_text(LABELS[name], exact=True).click()
    expect(page.locator("#evict-ages .gtitle")).to_contain_text(LABELS[name])
    expect(page.locator("#evict-victims")).to_contain_text(f"Next to leave under {LABELS[name]}")


def expect_rates(page, runs):
    """Waits until the table holds the hit rates of the second half of these runs, and of no others."""
    rows = page.locator("#evict-results tbody tr")
    expect(rows).to_have_count(len(runs))
    for run in runs:
        row = rows.filter(has=page.get_by_role("rowheader", name=LABELS[run.policy], exact=True))
        expect(row.locator("td").first).to_have_text(f"{100 * run.second_half.hit_tokens:.2f} %")


def replay_at(page, text):
    field = page.locator("#evict-capacity input, #evict-capacity textarea").first
    field.fill(text)
    field.press("Enter")


def test_opens_with_the_recorded_runs_numbers(visit, recorded):
    page, banner = visit.page, visit.page.locator("#evict-banner")
    open_part(page, "Who wins")
    expect_rates(page, recorded)
    for part in ("SIMULATED", "recorded 20", "more than under LRU"):
        expect(banner).to_contain_text(part)
    best = max((run for run in recorded if run.policy != "min"), key=lambda run: run.second_half.hit_tokens)
    drawn = page.locator("#evict-rate .annotation-text").filter(has_text=LABELS[best.policy])
    expect(drawn.filter(has_text=f"{100 * best.second_half.hit_tokens:.1f} %")).not_to_have_count(0)
    for name in ("curve", "misses"):
        expect(page.locator(f"#evict-{name} .js-plotly-plot")).to_have_count(1)


def test_a_bad_capacity_is_one_sentence_and_the_numbers_stay(visit, recorded):
    page = visit.page
    open_part(page, "Who wins")
    for text, said in (
        ("0", "at least one block"),
        ("lots", "is not a number"),
        ("0.00001 %", "less than one block"),
        ("100 %", "below 100 %"),
    ):
        replay_at(page, text)
        error = page.locator("#evict-status .fs-status-error .fs-status-text")
        expect(error).to_contain_text(said)
        assert "\n" not in error.inner_text()
        expect_rates(page, recorded)


def test_the_next_victims_come_with_the_factors_of_their_score(visit):
    page, victims = visit.page, visit.page.locator("#evict-victims")
    look_into(page, "saecache")
    for head in ("α queue", "w type", "p reuse", "idle, s", "Why this one", "What happened"):
        expect(victims.get_by_role("columnheader", name=head, exact=True)).to_be_visible()
    victims.locator("tbody tr").first.wait_for()
    look_into(page, "lru")
    victims.get_by_text("longer than any other block that may leave").first.wait_for()
    page.locator("#evict-occupancy").get_by_text("no queues").wait_for()
    page.locator("#evict-weights").get_by_text("This policy learns nothing").wait_for()


def test_a_press_on_the_strip_names_the_request_that_suffered(visit):
    page, cases = visit.page, visit.page.locator("#evict-regret-cases")
    look_into(page, "saecache")
    cases.locator("li").first.wait_for()
    bar, chosen = page.locator("#evict-regret .js-plotly-plot .trace.bars").first.locator(".point path").nth(40), cases.locator("strong")
    before, deadline = chosen.inner_text(), time.monotonic() + WAIT_MS / 1000
    # The bars lie under the plot's own layer, so that nothing says whether they still move: a press that misses is made again.
    while chosen.inner_text() == before:
        assert time.monotonic() < deadline, "no press chose another bar"
        if box := bar.bounding_box():
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2)
        page.wait_for_timeout(100)
    expect(cases.locator("li").first).to_contain_text("suffered")
    pressed = chosen.inner_text()
    cases.get_by_role("button", name="Next bar").press("Enter")
    expect(chosen).not_to_have_text(pressed)


def test_the_game_is_played_by_keyboard_and_compares_all_four(visit):
    page, cards = visit.page, visit.page.locator(".fs-evict-card")
    open_part(page, "Game")
    cards.first.focus()
    for number in range(10):
        page.locator("#evict-game h3").get_by_text(f"Eviction {number + 1} of 10").wait_for()
        expect(cards.first).to_be_focused()
        page.keyboard.press(str(number % 5 + 1))
    game = Replays(Turns()).game("balanced", 0.05, 0)
    mine = sum(moment.cards[i % 5].next_request >= 0 for i, moment in enumerate(game.moments))
    lost = (mine, *(game.num_lost(player) for player in ("lru", "saecache", "min")))
    expect(page.locator(".fs-evict-score span")).to_have_text([f"{num} lost" for num in lost])
    expect(page.locator("#evict-game tbody tr")).to_have_count(10)
    page.get_by_role("button", name="Other blocks").click()
    page.locator("#evict-game").get_by_text("seed 1").wait_for()


def test_a_load_is_chosen_and_replayed_at_any_capacity(changing):
    page, banner = changing.page, changing.page.locator("#evict-banner")
    open_part(page, "Who wins")
    page.locator("#evict-workload input").click()
    page.get_by_role("option", name="Tool use behind one long prompt (SAECache loses here)").click()
    banner.get_by_text("SAECache (paper) loses to LRU").wait_for()
    replay_at(page, "20 %")
    banner.get_by_text("replayed just now").wait_for()
    page.locator("#evict-status").get_by_text("5 replays in").wait_for()
    run = run_replay(ReplayRequest("tool_use", "saecache", 0.2))
    row = page.locator("#evict-results tbody tr").filter(has=page.get_by_role("rowheader", name=LABELS["saecache"], exact=True))
    expect(row.locator("td").first).to_have_text(f"{100 * run.second_half.hit_tokens:.2f} %")
    expect(banner).to_contain_text(f"{run.capacity_blocks:,} blocks of 16 tokens")


def test_a_log_of_ones_own_is_replayed_and_a_broken_one_is_one_sentence(changing, tmp_path):
    page, banner = changing.page, changing.page.locator("#evict-banner")
    chooser = page.locator("#evict-open-log input[type=file], input[type=file][accept*=csv]").first
    rows = [
        f'{{"timestamp": {i * 1000}, "input_length": 2048, "output_length": 1, "hash_ids": [1, {i % 7 + 2}, {i % 7 + 20}, {i}]}}'
        for i in range(30, 90)
    ]
    good, bad = tmp_path / "mine.jsonl", tmp_path / "torn.jsonl"
    good.write_text("\n".join(rows))
    bad.write_text("\n".join([*rows[10:], rows[0]]))
    chooser.set_input_files(good)
    banner.get_by_text("60 requests").wait_for()
    # A small log is replayed at once, so the ways to choose a capacity are tried on it. The slider still stands where it was.
    for _ in range(4):
        page.locator("#evict-slider input[type=range]").press("ArrowRight")
    banner.get_by_text("12 % of all").wait_for()
    expect(page.locator("#evict-capacity input, #evict-capacity textarea").first).to_have_value("12 %")
    replay_at(page, "3 blocks")
    banner.locator(".fs-notice").get_by_text("The cache of 3 blocks is smaller than the smallest prompt").wait_for()
    chooser.set_input_files(bad)
    page.locator("#evict-status .fs-status-error").get_by_text("torn.jsonl, line 51").wait_for()
    expect(banner).to_contain_text("60 requests")


def open_runs(page, path):
    page.locator("#evict-open-runs input[type=file], input[type=file][multiple]").first.set_input_files(path)


def test_a_run_is_taken_away_and_opened_again(visit, changing, tmp_path):
    look_into(visit.page, "saecache")
    with visit.page.expect_download() as download:
        visit.page.locator("#evict-download").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    run = parse_cache_run(path.read_bytes())
    assert run.policy == "saecache" and path.name == f"fusescope-balanced-saecache-{run.capacity_blocks}-0.cache.json.gz"
    open_part(changing.page, "Why")
    open_runs(changing.page, path)
    changing.page.locator("#evict-banner").get_by_text("from a file of").wait_for()
    changing.page.locator("#evict-victims").get_by_text("The file holds no reasons").wait_for()


def test_text_of_a_hostile_file_stays_text(changing, tmp_path):
    page = changing.page
    path = tmp_path / "hostile.cache.json.gz"
    path.write_bytes(dump_cache_run(made_set(workload=HOSTILE, notes=(HOSTILE,), policy=HOSTILE)[1]))
    open_part(page, "Why")
    open_runs(page, path)
    page.locator("#evict-banner").get_by_text("<img src=x").first.wait_for()
    page.locator("#evict-policy").get_by_text("<img src=x").first.wait_for()
    page.locator("#evict-occupancy .js-plotly-plot .main-svg").first.wait_for()
    open_part(page, "Who wins")
    page.locator("#evict-results").get_by_text("<img src=x").first.wait_for()
    expect(page.locator("#evict-banner img, #evict-how img, #evict-results img, #evict-policy img")).to_have_count(0)
    assert page.evaluate("window.__hit") is None


def expect_no_part_to_scroll_sideways(page, width):
    for name, part in PARTS.items():
        open_part(page, name)
        page.locator(part).first.wait_for()
        page.wait_for_function("(width) => document.documentElement.scrollWidth <= width", arg=width)


def test_no_part_scrolls_sideways(visit):
    expect_no_part_to_scroll_sideways(visit.page, 1920)


def test_no_part_scrolls_sideways_on_a_phone(phone):
    phone.page.get_by_role("tab", name="Evict", exact=True).click()
    expect_no_part_to_scroll_sideways(phone.page, 390)
    open_part(phone.page, "Why")
    expect(phone.page.get_by_role("radio", name=LABELS["saecache"])).to_be_checked()
