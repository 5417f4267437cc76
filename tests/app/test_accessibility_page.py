"""axe-core on our parts of the page's tabs; Gradio's own controls are not ours to mend."""

import pytest
from accessibility import OF_COLOR, hindrances
from launch import visiting

pytestmark = pytest.mark.browser
TABS = {
    "Fuse": "#fuse-banner",
    "Chat": "#chat-documents",
    "Play": "#play-run .fp-root",
    "Compare": "#compare-table table",
    "Claims": "#claims-view .fs-claim",
}
# As an address with this theme does; the player looks at it when it draws.
LOOK = """(theme) => {
  document.body.classList.toggle("dark", theme === "dark");
  window.fusescope?.dispatch({type: "set", values: {}});
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))));
}"""
# Colours are looked up behind each text. Pictures are Plotly's own, and the later tokens of a chunk look like its first.
FEWER = ".js-plotly-plot, .fs-tokens .fs-token:nth-child(n + 12):not(.fs-anchor, .fs-answer-span) { display: none }"


def test_nothing_serious_in_our_nodes(browser, plain_url):
    with visiting(browser, plain_url, ready="#fuse-text .fs-token") as visit:
        visit.page.add_style_tag(content=FEWER)
        for tab, shown in TABS.items():
            visit.page.get_by_role("tab", name=tab, exact=True).click()
            visit.page.locator(shown).first.wait_for()
            for theme, rules in (("light", ()), ("dark", OF_COLOR)):
                visit.page.evaluate(LOOK, theme)
                assert hindrances(visit.page, ".fs-root", ".fp-root", rules=rules) == [], (tab, theme)
        assert visit.problems == []
