"""The Layers tab in a browser, over the fake session: layers with their evidence, kernels beside their references."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(phone):
    """The tab on a phone."""
    phone.page.get_by_role("tab", name="Layers", exact=True).click()
    phone.page.locator("#layers-recall .js-plotly-plot .main-svg").first.wait_for()
    return phone


def test_the_model_in_use_comes_first_and_others_can_be_looked_up(opened):
    page, note = opened.page, opened.page.locator("#layers-note textarea")
    expect(page.locator("#layers-model input")).to_have_value("tiny-llama")
    expect(note).to_have_value(re.compile(re.escape("generated (n=20)")))
    opened.wait_until_it_fits()
    page.locator("#layers-model input").click()
    page.get_by_role("option", name="Other-8B", exact=True).click()
    page.locator("#layers-recall").get_by_text("Critical layers of Other-8B").wait_for()
    expect(note).to_have_value(re.compile("2606.05875"))
    opened.wait_until_it_fits()
    opened.wait_until_it_fits(1920)


def test_kernels_are_verified_at_the_press_of_a_button(opened):
    page = opened.page
    page.locator("#kernels-verify").click()
    page.locator("#kernels-table").get_by_text("T=5 <b>").wait_for()
    expect(page.locator("#kernels-status")).to_contain_text("All 1 agree, to 1.0e-07 at most. Triton is not here.")
    expect(page.locator("#kernels-verify")).to_be_enabled()


def test_pictures_drawn_behind_another_tab_take_its_width_once_it_is_opened(opened):
    page = opened.page
    for tab, width in (("Fuse", 1920), ("Layers", 1400), ("Fuse", 1400)):
        page.get_by_role("tab", name=tab, exact=True).click()
        page.locator(f"{'#fuse-kv' if tab == 'Fuse' else '#layers-recall'} .js-plotly-plot .main-svg").first.wait_for()
        page.set_viewport_size({"width": width, "height": 1080})
    page.wait_for_function(
        """() => [...document.querySelectorAll("#fuse-ttft, #fuse-kv, #fuse-timeline")].every((place) => {
          const plot = place.querySelector(".js-plotly-plot"), drawn = plot && plot.querySelector(".main-svg");
          return drawn && Math.abs(drawn.getBoundingClientRect().width - plot.parentElement.clientWidth) <= 2;
        })"""
    )
