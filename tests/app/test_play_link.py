"""The Play tab by its address: links open the same state, the address follows, sessions do not mix, keys stay where the player is seen."""

import re
from urllib.request import ProxyHandler, build_opener

import pytest
from fakes import FakeSession
from launch import served, visiting
from play_visits import DRAWN, do, need_node, open_tab, playing, query_of, state, wait_for_address, wait_for_state
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
HARBOUR, HOSTILE = (scenario.name for scenario in FakeSession().scenarios())


@pytest.fixture(scope="module", params=["spa", "ssr"])
def either_url(request, plain_url):
    """The page as the browser builds it, and as node renders it first. Gradio serves the former where it finds no node."""
    if request.param == "spa":
        yield plain_url
        return
    need_node()
    with served("fakes:FakeSession", ssr=True) as address:
        yield address


@pytest.fixture(scope="module")
def opened(browser, either_url):
    with playing(browser, either_url) as visit:
        yield visit


def test_node_renders_the_page_where_the_environment_asks_for_it(either_url, plain_url):
    with build_opener(ProxyHandler({})).open(either_url) as answer:
        html = answer.read().decode()
    assert ("__sveltekit" in html) == (either_url != plain_url), "node's rendering is told by its framework's name"


def test_keys_belong_to_the_player_only_where_it_is_seen_and_nobody_types(opened):
    page, player = opened.page, opened.page.locator("#play-run .fp-root")
    page.keyboard.press("h")
    do(page, type="token", token=33)
    do(page, type="seek", time=0.1)
    wait_for_state(page, contrast=True, token=33, time=0.1)
    before = state(page)
    open_tab(page, "Fuse")
    expect(player).to_be_hidden()
    expect(page.locator("#fuse-question input")).to_be_visible()
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("h")
    page.keyboard.press("PageDown")
    assert state(page) == before
    with page.expect_response(lambda answer: "/gradio_api/" in answer.url and answer.request.method == "POST") as handed_over:
        open_tab(page, "Play")
    handed_over.value.finished()
    expect(player).to_be_visible()
    page.evaluate(DRAWN)
    assert state(page) == before, "the same run handed over again changes nothing of what is looked at"
    page.keyboard.press("h")
    assert state(page)["contrast"] is False, "the tab just pressed has the focus, and the player the keys"
    page.evaluate("() => { const field = document.createElement('input'); document.body.append(field); field.focus(); }")
    page.keyboard.press("h")
    assert state(page)["contrast"] is False and opened.problems == []


def test_a_link_gives_the_same_state_in_another_session(browser, either_url, opened):
    url, page = either_url, opened.page
    page.locator("#play-run select").first.select_option(value=HOSTILE)
    wait_for_state(page, scenario=HOSTILE)
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
    # The last of them is written last, and all of them at once.
    wait_for_address(page, "contrast=1")
    own, query = state(page), query_of(page)
    for part in ("__theme=light", "tab=play", f"sc={HOSTILE}", "tok=40", "lang=es"):
        expect(page).to_have_url(re.compile(re.escape(part)))
    assert query.count("?") == 0 and own["token"] == 40
    page.get_by_role("button", name="Copiar enlace").click()
    page.get_by_text("Copiado.", exact=True).wait_for()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith(f"{url}?tab=play&sc={HOSTILE}&") and "__theme" not in copied
    assert opened.problems == []
    with playing(browser, url, query.replace("tab=play&", "", 1)) as other:
        wait_for_state(other.page, **own)
        expect(other.page.locator("#fuse-scenario input").first).to_have_value("Injection <b>test</b> ${2+2}")
        do(other.page, type="token", token=41)
        wait_for_address(other.page, "tok=41")
        assert query_of(other.page) == query.replace("tok=40", "tok=41"), "nothing else of the address has changed"
        assert state(page) == own, "two sessions share nothing"
        assert other.problems == []


def test_a_link_to_a_talk_opens_the_talk(browser, plain_url):
    with playing(browser, plain_url, f"sc={HARBOUR}&present=1&t=0.2&panel=map") as visit:
        page = visit.page
        expect(page.locator("#play-run .fp-root")).to_have_attribute("data-present", "1")
        wait_for_state(page, present=True, time=0.2)
        page.wait_for_function(
            """() => {
              const box = document.querySelector("#play-run .fp-root").getBoundingClientRect();
              return [box.x, box.y, box.width, box.height].join() === "0,0,1920,1080";
            }"""
        )
        page.keyboard.press("Escape")
        wait_for_state(page, present=False)
        page.wait_for_function("() => !window.location.search.includes('present')")
        assert "t=0.2" in query_of(page).split("&") and visit.problems == []


def test_a_link_opens_any_tab_and_the_address_follows_the_tabs_and_the_scenario(browser, plain_url):
    with visiting(browser, plain_url, query="tab=layers", ready="role=tab[name='Layers'][selected]") as visit:
        page, num_before = visit.page, visit.page.evaluate("() => history.length")
        page.locator("#layers-recall .js-plotly-plot .main-svg").first.wait_for()
        assert query_of(page) == "tab=layers"
        open_tab(page, "Evict")
        wait_for_address(page, "tab=evict")
        expect(page.locator("#fuse-results .js-plotly-plot, #fuse-cards .fs-card")).to_have_count(0)
        open_tab(page, "Fuse")
        page.locator("#fuse-kv .js-plotly-plot .main-svg").first.wait_for()
        page.wait_for_function("() => !window.location.search.includes('tab=')")
        assert "sc=" not in query_of(page)
        page.get_by_label("Scenario").first.click()
        page.get_by_role("option").nth(1).click()
        wait_for_address(page, f"sc={HOSTILE}")
        assert page.evaluate("() => history.length") == num_before, "nothing is added to the history"
        assert visit.problems == []


def test_a_link_with_nonsense_opens_the_first_tab(browser, plain_url):
    with visiting(browser, plain_url, query="tab=%3Cimg%3E&sc=../x&t=-1&m=evil&present=2") as visit:
        page = visit.page
        expect(page.get_by_role("tab", name="Fuse", exact=True)).to_have_attribute("aria-selected", "true")
        open_tab(page, "Play")
        page.locator("#play-run canvas").first.wait_for()
        wait_for_state(page, scenario=HARBOUR, present=False)
        assert visit.problems == []
