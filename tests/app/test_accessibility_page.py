"""axe-core on our parts of the page's tabs; Gradio's own controls are not ours to mend."""

import pytest
from accessibility import hindrances
from launch import served, visiting

pytestmark = pytest.mark.browser
TABS = {
    "Fuse": "#fuse-banner",
    "Chat": "#chat-documents",
    "Play": "#play-run .fp-root",
    "Compare": "#compare-table table",
    "Claims": "#claims-view .fs-claim",
}


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession") as address:
        yield address


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_in_our_nodes(browser, url, theme):
    with visiting(browser, url, theme=theme) as visit:
        for tab, shown in TABS.items():
            visit.page.get_by_role("tab", name=tab, exact=True).click()
            visit.page.locator(shown).first.wait_for()
            assert hindrances(visit.page, ".fs-root", ".fp-root") == [], tab
