"""A live run in a browser: a tiny model serves real requests, the pictures follow, the result opens in the other parts."""

import pytest
from launch import served, visiting
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession") as address:
        yield address


@pytest.fixture
def visit(browser, url):
    with visiting(browser, url) as opened:
        page = opened.page
        page.get_by_role("tab", name="Evict", exact=True).click()
        page.locator("#evict-results tbody tr").first.wait_for()
        page.get_by_role("tab", name="Live run", exact=True).click()
        page.locator("#evict-live-start").wait_for()
        yield opened
        assert opened.problems == []


def set_requests(page, number):
    field = page.locator("#evict-live-requests input[type=number]")
    field.fill(str(number))
    field.press("Tab")


def test_a_live_run_is_shown_as_it_goes_and_opens_in_the_same_pictures(visit):
    page = visit.page
    assert "Nothing ran live yet" in page.locator("#evict-live-table").inner_text()
    set_requests(page, 10)
    page.locator("#evict-live-start").click()
    page.locator("#evict-live-status").get_by_text("10 requests under 2 policies").wait_for()
    rows = page.locator("#evict-live-table tbody tr")
    assert [row.locator("th").inner_text() for row in rows.all()] == ["LRU", "SAECache (paper)"]
    assert rows.first.locator("td").first.inner_text() == "10"
    assert "mean time to first token" in page.locator("#evict-live-words").inner_text()
    page.locator("#evict-live-times .js-plotly-plot .point").nth(19).wait_for(state="attached")
    page.locator("#evict-banner").get_by_text("served just now").wait_for()
    banner = page.locator("#evict-banner").inner_text()
    assert "LIVE" in banner and "Measured:" in banner
    page.get_by_role("tab", name="Who wins", exact=True).click()
    page.locator("#evict-results").get_by_text("Measured first token").wait_for()
    assert "Live: a model served every request." in page.locator("#evict-how").inner_text()


def test_stop_ends_it_and_keeps_what_was_served(visit):
    page = visit.page
    set_requests(page, 120)
    page.locator("#evict-live-start").click()
    page.locator("#evict-live-table tbody tr").first.wait_for()
    page.locator("#evict-live-stop").click()
    page.locator("#evict-live-status").get_by_text("Stopped.").wait_for()
    expect(page.locator("#evict-live-table tbody tr")).to_have_count(2)
    assert "SIMULATED" in page.locator("#evict-banner").inner_text()
