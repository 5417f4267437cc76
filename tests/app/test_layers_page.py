"""The Layers tab in a browser, over the fake session: layers with their evidence, kernels beside their references."""

import pytest
from launch import served, visiting

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession") as address:
        yield address


@pytest.mark.parametrize(("width", "theme"), [(1920, "light"), (390, "dark")])
def test_the_model_in_use_comes_first_and_others_can_be_looked_up(browser, url, width, theme):
    with visiting(browser, url, width=width, height=1080 if width > 600 else 844, theme=theme) as visit:
        page = visit.page
        page.get_by_role("tab", name="Layers", exact=True).click()
        page.locator("#layers-recall .js-plotly-plot .main-svg").first.wait_for()
        assert page.locator("#layers-model input").input_value() == "tiny-llama"
        assert "generated (n=20)" in page.locator("#layers-note textarea").input_value()
        page.locator("#layers-model input").click()
        page.get_by_role("option", name="Other-8B", exact=True).click()
        page.locator("#layers-recall").get_by_text("Critical layers of Other-8B").wait_for()
        assert "2606.05875" in page.locator("#layers-note textarea").input_value()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert visit.problems == []


def test_kernels_are_verified_at_the_press_of_a_button(browser, url):
    with visiting(browser, url) as visit:
        page = visit.page
        page.get_by_role("tab", name="Layers", exact=True).click()
        page.locator("#kernels-verify").click()
        page.locator("#kernels-table").get_by_text("T=5 <b>").wait_for()
        assert "All 1 agree, to 1.0e-07 at most. Triton is not here." in page.locator("#kernels-status").inner_text()
        page.locator("#kernels-verify:enabled").wait_for()
        assert visit.problems == []
