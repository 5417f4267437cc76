"""Visits to the Play tab of the served page."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from launch import Visit, visiting
from playwright.sync_api import TimeoutError

LEAST_NODE = 20

STATE = "() => window.fusescope && window.fusescope.state()"
HOLDS = """(wanted) => {
  const now = window.fusescope && window.fusescope.state();
  return now && Object.entries(wanted).every(([name, value]) => JSON.stringify(now[name]) === JSON.stringify(value));
}"""
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))"


def need_node() -> None:
    """Skips, naming it, where there is no node that Gradio can render pages with."""
    node = shutil.which("node")
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip() if node else "none"
    if not node or int(said.lstrip("v").split(".")[0]) < LEAST_NODE:
        pytest.skip(f"needs node {LEAST_NODE} or newer, which renders the page on the server; here is {said}")


@contextlib.contextmanager
def playing(browser: Any, url: str, query: str = "", **options: Any) -> Iterator[Visit]:
    """Opens the page by a link to its Play tab and waits for the first picture."""
    with visiting(browser, url, query=f"tab=play{'&' if query else ''}{query}", ready="#play-run .fp-root canvas", **options) as visit:
        visit.page.wait_for_function("() => performance.getEntriesByName('fusescope:first-picture').length > 0")
        yield visit


def open_tab(page: Any, name: str) -> None:
    """Presses a tab."""
    page.get_by_role("tab", name=name, exact=True).click()


def state(page: Any) -> dict[str, Any]:
    """Returns window.fusescope.state() once what was asked for is drawn."""
    page.evaluate(DRAWN)
    return page.evaluate(STATE)


def wait_for_state(page: Any, **wanted: Any) -> None:
    """Waits until the player's state holds these values. The page may load itself anew meanwhile."""
    try:
        page.wait_for_function(HOLDS, arg=wanted)
    except TimeoutError:
        now = state(page)
        assert {name: now[name] for name in wanted} == wanted


def do(page: Any, **action: Any) -> None:
    """Gives the player an action and waits until it is drawn."""
    page.evaluate("(action) => window.fusescope.dispatch(action)", action)
    page.evaluate(DRAWN)


def wait_for_address(page: Any, part: str) -> None:
    """Waits until the address holds a part of a query."""
    page.wait_for_function("(part) => window.location.search.includes(part)", arg=part)


def query_of(page: Any) -> str:
    """Returns the address's query without the page's own theme."""
    query = page.evaluate("() => window.location.search.slice(1)")
    return "&".join(part for part in query.split("&") if part and not part.startswith("__theme="))
