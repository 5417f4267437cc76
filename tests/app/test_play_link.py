"""The Play tab by its address: links open the same state, the address follows, sessions do not mix, keys stay where the player is seen."""

from urllib.request import ProxyHandler, build_opener

import pytest
from fakes import FakeSession
from launch import served, visiting
from play_visits import do, need_node, open_tab, playing, query_of, state, wait_for_address

pytestmark = pytest.mark.browser
HARBOUR, HOSTILE = (scenario.name for scenario in FakeSession().scenarios())


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession") as address:
        yield address


@pytest.fixture(scope="module", params=["spa", "ssr"])
def either_url(request, url):
    """The page as the browser builds it, and as node renders it first. Gradio serves the former where it finds no node."""
    if request.param == "spa":
        yield url
        return
    need_node()
    with served("fakes:FakeSession", ssr=True) as address:
        yield address


def test_node_renders_the_page_where_the_environment_asks_for_it(either_url, url):
    with build_opener(ProxyHandler({})).open(either_url) as answer:
        html = answer.read().decode()
    assert ("__sveltekit" in html) == (either_url != url), "node's rendering is told by its framework's name"


def test_a_link_gives_the_same_state_in_another_session(browser, either_url):
    url = either_url
    with playing(browser, url) as visit:
        page = visit.page
        page.locator("#play-run select").first.select_option(value=HOSTILE)
        page.wait_for_function("(name) => window.fusescope.state().scenario === name", arg=HOSTILE)
        for action in (
            {"type": "toggleMethod", "method": "reuse"},
            {"type": "ratio", "ratio": 0.17},
            {"type": "token", "token": 40},
            {"type": "window", "from": 20, "to": 80},
            {"type": "seek", "time": 0.123},
            {"type": "panel", "panel": "answers"},
            {"type": "theme", "theme": "dark"},
            {"type": "lang", "lang": "es"},
            {"type": "contrast"},
        ):
            do(page, **action)
        wait_for_address(page, "contrast=1")
        assert page.url.count("?") == 1 and "__theme=light" in page.url and "tab=play" in page.url and f"sc={HOSTILE}" in page.url
        page.get_by_role("button", name="Copiar enlace").click()
        copied = page.evaluate("() => navigator.clipboard.readText()")
        assert copied.startswith(f"{url}?tab=play&sc={HOSTILE}&") and "__theme" not in copied
        own, query = state(page), query_of(page)
        assert visit.problems == []
        with playing(browser, url, query.replace("tab=play&", "", 1)) as other:
            assert state(other.page) == own and own["token"] == 40
            other.page.wait_for_timeout(300)
            assert query_of(other.page) == query
            assert other.page.locator("#fuse-scenario input").first.input_value() != "" and other.problems == []
            do(other.page, type="token", token=41)
            assert state(page) == own, "two sessions share nothing"


def test_a_link_to_a_talk_opens_the_talk(browser, url):
    with playing(browser, url, f"sc={HARBOUR}&present=1&t=0.2&panel=map") as visit:
        root = visit.page.locator("#play-run .fp-root")
        assert root.get_attribute("data-present") == "1" and state(visit.page)["time"] == 0.2
        box = root.bounding_box()
        assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 1920, 1080)
        visit.page.keyboard.press("Escape")
        assert state(visit.page)["present"] is False
        visit.page.wait_for_function("() => !window.location.search.includes('present')")
        assert "t=0.2" in visit.page.url and visit.problems == []


def test_the_address_follows_the_tabs_and_the_scenario(browser, url):
    with visiting(browser, url) as visit:
        page = visit.page
        assert "tab=" not in page.url and "sc=" not in page.url
        open_tab(page, "Evict")
        wait_for_address(page, "tab=evict")
        open_tab(page, "Fuse")
        page.wait_for_function("() => !window.location.search.includes('tab=')")
        page.get_by_label("Scenario").first.click()
        page.get_by_role("option").nth(1).click()
        wait_for_address(page, f"sc={HOSTILE}")
        assert page.evaluate("() => history.length") <= 2, "nothing is added to the history"
        assert visit.problems == []


def test_a_link_opens_any_tab(browser, url):
    with visiting(browser, url, query="tab=layers", ready="role=tab[name='Layers'][selected]") as visit:
        visit.page.wait_for_timeout(300)
        assert "tab=layers" in visit.page.url and visit.problems == []


def test_a_link_with_nonsense_opens_the_first_tab(browser, url):
    with visiting(browser, url, query="tab=%3Cimg%3E&sc=../x&t=-1&m=evil&present=2") as visit:
        assert visit.page.get_by_role("tab", name="Fuse", exact=True).get_attribute("aria-selected") == "true"
        open_tab(visit.page, "Play")
        visit.page.locator("#play-run canvas").first.wait_for()
        assert state(visit.page)["scenario"] == HARBOUR and state(visit.page)["present"] is False
        assert visit.problems == []


def test_keys_belong_to_the_player_only_where_it_is_seen_and_nobody_types(browser, either_url):
    with playing(browser, either_url) as visit:
        page = visit.page
        page.keyboard.press("h")
        do(page, type="token", token=33)
        do(page, type="seek", time=0.1)
        before = state(page)
        assert before["contrast"] is True and before["token"] == 33
        open_tab(page, "Fuse")
        page.locator("#fuse-question input").first.wait_for()
        page.evaluate("() => document.activeElement.blur()")
        page.keyboard.press("h")
        page.keyboard.press("PageDown")
        assert state(page) == before
        open_tab(page, "Play")
        page.wait_for_timeout(1000)
        assert state(page) == before, "the same run handed over again changes nothing of what is looked at"
        page.keyboard.press("h")
        assert state(page)["contrast"] is False, "the tab just pressed has the focus, and the player the keys"
        page.evaluate("() => { const field = document.createElement('input'); document.body.append(field); field.focus(); }")
        page.keyboard.press("h")
        assert state(page)["contrast"] is False and visit.problems == []
