"""The page's address: what a link asks for, and how the address follows tabs and what is chosen in them.

The players write and read the rest of it, under the keys of assets/player/core/url.js. Nothing here keeps anything: a link holds names
and a view, never a run.
"""

import json
import os
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

import gradio as gr

FIRST_TAB: Final = "fuse"
HERE: Final = (None, FIRST_TAB)
FIRST_VIEW: Final = "rates"
# Stands in the place of what the first tab shows while a link has led to another one: it draws its pictures when it is looked at.
UNSEEN: Final = "unseen"
HUB_SPACES: Final = "https://huggingface.co/spaces/"
# What is looked at in a run, and everything of the address that belongs to one tab.
OF_RUN: Final = ("m", "look", "r", "L", "tok", "t", "z", "scene")
OF_TAB: Final = ("view", "sc", *OF_RUN, "panel", "speed", "present", "contrast", "theme", "lang")
# The tab that a page opens with is selected too, before the link has been read: only a change is written. Eviction is about other runs than
# the other tabs: each side keeps its part of the address while the other is looked at. Another scenario ends what was looked at in the one
# before.
_WRITE: Final = """(chosen) => {
  const key = %s, value = %s, first = %s, page = document.body;
  const query = new URLSearchParams(window.location.search);
  if (key !== "sc") {
    const before = page.dataset[key] || first;
    page.dataset[key] = value;
    if (before === value) return;
    if (key === "tab" && (query.get("tab") || first) !== value) {
      const kept = JSON.parse(page.dataset.kept || "{}"), own = %s;
      kept[before] = own.filter((name) => query.has(name)).map((name) => [name, query.get(name)]);
      page.dataset.kept = JSON.stringify(kept);
      if (kept[value] || before === "evict" || value === "evict") {
        for (const name of own) query.delete(name);
        for (const [name, text] of kept[value] || []) query.set(name, text);
      }
    }
  } else for (const old of %s) query.delete(old);
  if (value === first) query.delete(key); else query.set(key, value);
  const search = query.toString().replace(/%%2C/gu, ",");
  window.history.replaceState(window.history.state, "", window.location.pathname + (search ? `?${search}` : "") + window.location.hash);
}"""


class Asked(NamedTuple):
    """What a link asks for, as far as the page has it; None for the rest."""

    tab: str | None
    scenario: str | None
    view: str | None = None


def asked(query: Mapping[str, str], tabs: Collection[str], scenarios: Collection[str], views: Collection[str] = ()) -> Asked:
    """Returns the tab, the scenario and the view of a query; names that the page does not have count as not given."""
    tab, scenario, view = query.get("tab"), query.get("sc"), query.get("view")
    return Asked(tab if tab in tabs else None, scenario if scenario in scenarios else None, view if view in views else None)


def link_base(environ: Mapping[str, str] = os.environ) -> str:
    """Returns what a link begins with: a Space is named by its page, whose frame has an address of its own; "" elsewhere."""
    if space := environ.get("SPACE_ID"):
        return HUB_SPACES + space
    return f"https://{host}/" if (host := environ.get("SPACE_HOST")) else ""


def run_of_link(names: Collection[str], tabs: gr.Tabs) -> Callable[[gr.Request], tuple[object, str | None]]:
    """Returns a callback whose outputs are the scenario selector, at what the link asks for, and UNSEEN where it leads to another tab.

    Args:
        tabs: read when a visitor comes, when all tabs are in it.
    """

    def choose(request: gr.Request) -> tuple[object, str | None]:
        wanted = asked(request.query_params, tab_names(tabs), names)
        return gr.skip() if wanted.scenario is None else gr.update(value=wanted.scenario), None if wanted.tab in HERE else UNSEEN

    return choose


def tab_of_link(tabs: gr.Tabs) -> Callable[[gr.Request], object]:
    """Returns a callback whose output is the tabs, at what the link asks for."""

    def choose(request: gr.Request) -> object:
        wanted = asked(request.query_params, tab_names(tabs), ()).tab
        return gr.skip() if wanted in HERE else gr.Tabs(selected=wanted)

    return choose


def load_of_link(loads: Collection[str], views: Collection[str]) -> Callable[[gr.Request], tuple[object, object]]:
    """Returns a callback whose outputs are the load selector and the views of the Evict tab, at what the link asks for."""

    def choose(request: gr.Request) -> tuple[object, object]:
        wanted = asked(request.query_params, ("evict",), loads, views)
        if wanted.tab is None:
            return gr.skip(), gr.skip()
        return (
            gr.skip() if wanted.scenario is None else gr.update(value=wanted.scenario),
            gr.skip() if wanted.view in (None, FIRST_VIEW) else gr.Tabs(selected=wanted.view),
        )

    return choose


def tab_names(tabs: gr.Tabs) -> tuple[str, ...]:
    """Returns the names of the tabs, as links have them."""
    return tuple(str(tab.id) for tab in tabs.children if isinstance(tab, gr.Tab))


def follow(tabs: gr.Tabs, scenario: gr.Dropdown, key: str = "tab", first: str = FIRST_TAB) -> None:
    """Lets the address follow the tabs, under `key`, and the scenario."""
    for tab in (tab for tab in tabs.children if isinstance(tab, gr.Tab)):
        script = _script(key, json.dumps(str(tab.id)), first)
        tab.select(None, None, None, js=script, show_progress="hidden", api_visibility="private")
    scenario.input(None, [scenario], None, js=_script("sc", "chosen", ""), show_progress="hidden", api_visibility="private")


def _script(key: str, value: str, first: str) -> str:
    return _WRITE % (json.dumps(key), value, json.dumps(first), json.dumps(OF_TAB), json.dumps(OF_RUN))
