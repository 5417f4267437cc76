"""A live run in a browser: a tiny model serves real requests, the pictures follow, the result opens in the other parts."""

import pytest
from evict_samples import HELD_REQUESTS
from launch import served, visiting
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def run_live(page, num_requests):
    field = page.locator("#evict-live-requests input[type=number]")
    field.fill(str(num_requests))
    field.press("Tab")
    expect(field).to_have_value(str(num_requests))
    page.locator("#evict-live-start").click()


def test_a_live_run_stops_or_is_shown_as_it_goes_and_opens_in_the_same_pictures(browser):
    opened = {"query": "tab=evict&view=live", "ready": "#evict-live-start"}
    with served("evict_samples:holding_session") as url, visiting(browser, url, **opened) as visit:
        page, banner, status = visit.page, visit.page.locator("#evict-banner"), visit.page.locator("#evict-live-status")
        rows = page.locator("#evict-live-table tbody tr")
        expect(page.locator("#evict-live-table")).to_contain_text("Nothing ran live yet")
        expect(banner).to_contain_text("SIMULATED")
        run_live(page, HELD_REQUESTS)
        expect(rows).to_have_count(2)
        page.locator("#evict-live-stop").click()
        status.get_by_text("Stopped.").wait_for()
        expect(rows).to_have_count(2)
        expect(banner).to_contain_text("SIMULATED")
        run_live(page, 10)
        status.get_by_text("10 requests under 2 policies").wait_for()
        expect(rows.locator("th")).to_have_text(["LRU", "SAECache (paper)"])
        expect(rows.first.locator("td").first).to_have_text("10")
        expect(page.locator("#evict-live-words")).to_contain_text("mean time to first token")
        page.locator("#evict-live-times .js-plotly-plot .point").nth(19).wait_for(state="attached")
        banner.get_by_text("served just now").wait_for()
        for part in ("LIVE", "Measured:"):
            expect(banner).to_contain_text(part)
        page.get_by_role("tab", name="Who wins", exact=True).click()
        page.locator("#evict-results").get_by_text("Measured first token").wait_for()
        expect(page.locator("#evict-how")).to_contain_text("Live: a model served every request.")
        assert visit.problems == []
