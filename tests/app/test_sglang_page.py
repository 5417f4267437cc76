"""The lane to an SGLang server in a browser: chosen, run, badged, compared."""

import pytest
from launch import served, visiting
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_a_visitor_runs_the_same_question_on_the_server(browser):
    with served("fake_sglang:page_session") as url, visiting(browser, url) as visit:
        page = visit.page
        expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)
        expect(page.locator("#fuse-banner .fs-badge-server")).to_have_count(0)
        expect(page.locator("#fuse-prefix-cache")).to_have_count(0)
        page.locator("#fuse-place").get_by_text("SGLang at 127.0.0.1:").click()
        page.locator("#fuse-prefix-cache input").wait_for()
        visit.run_and_wait()
        expect(page.locator("#fuse-banner .fs-badge-server")).to_have_text("SGLang")
        expect(page.locator("#fuse-banner .fs-notice").first).to_contain_text("does not give out")
        expect(page.locator("#fuse-cards .fs-card")).to_have_count(4)
        expect(page.locator("#fuse-cards")).to_contain_text("inside the server")
        expect(page.locator("#fuse-kv")).to_contain_text("keys and values")
        page.get_by_role("tab", name="Play", exact=True).click()
        expect(page.locator("#play-run .fp-badge-sglang")).to_be_visible()
        assert visit.problems == []
