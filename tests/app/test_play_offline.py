"""The film without its server: it goes on, says OFFLINE, and says when the server is back."""

from contextlib import ExitStack

import pytest
from launch import free_port, served
from play_visits import do, need_node, open_tab, playing, state, wait_for_address, wait_for_state
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
# What the browser itself prints for a request that got no answer.
OWN_WORDS = ("console: Failed to load resource: net::ERR_",)


@pytest.mark.parametrize("ssr", [False, True], ids=["spa", "ssr"])
def test_the_film_goes_on_without_its_server_and_says_when_it_is_back(browser, ssr):
    if ssr:
        need_node()
    port = free_port()
    with ExitStack() as server:
        url = server.enter_context(served(port=port, ssr=ssr))
        with playing(browser, url, motion="no-preference") as visit:
            page, top = visit.page, visit.page.locator("#play-run .fp-top")
            do(page, type="set", values={"speed": 0.02, "time": 0, "playing": True})
            expect(top.get_by_text("OFFLINE")).to_have_count(0)
            server.close()
            top.get_by_text("OFFLINE: the server does not answer.").wait_for()
            before = state(page)["time"]
            # The film goes on.
            page.wait_for_function("(before) => window.fusescope.state().time > before", arg=before)
            do(page, type="pause")
            do(page, type="token", token=44)
            kept = state(page)
            wait_for_address(page, "tok=44")
            # That the server is back is said for some seconds only, so it is looked for from its start on.
            with served(port=port, ssr=ssr, is_awaited=False):
                top.get_by_text("The server is back.").wait_for()
                expect(top.get_by_text("OFFLINE")).to_have_count(0)
                wait_for_state(page, **kept)
                # Whatever next needs the server finds a new one, and the page loads itself anew: the address brings the state back.
                open_tab(page, "Fuse")
                open_tab(page, "Play")
                # Nothing tells that it has: where this is too short for it, less is seen, and what is awaited still holds.
                page.wait_for_timeout(1500)
                wait_for_state(page, **kept)
            assert [problem for problem in visit.problems if not problem.startswith(OWN_WORDS)] == []
