"""Pictures that were drawn behind another tab: Plotly gave them a width of its own, and fits them once the window tells of a new size."""

from typing import Final

import gradio as gr

_REFIT: Final = """() => {
  const fits = (plot) => {
    const drawn = plot.querySelector(".main-svg");
    return !drawn || !plot.offsetParent || Math.abs(drawn.getBoundingClientRect().width - plot.parentElement.clientWidth) <= 2;
  };
  const look = () => {
    if (![...document.querySelectorAll(".js-plotly-plot")].every(fits)) window.dispatchEvent(new Event("resize"));
  };
  requestAnimationFrame(() => requestAnimationFrame(look));
}"""


def refit_on_select(tabs: gr.Tabs) -> None:
    """Lets the pictures of a tab take its width when the tab is opened."""
    for tab in tabs.children:
        if isinstance(tab, gr.Tab):
            tab.select(None, None, None, js=_REFIT, show_progress="hidden", api_visibility="private")
