"""A file server for a folder, and a visit to the player it hands out."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launch import WAIT_MS, free_port, served_command
from pages import borrowed_page

# A picture is drawn again once its frame has got its size, which may move the frames below it.
STILL = """() => new Promise((done) => {
  let places = "", same = 0;
  const look = () => {
    const now = JSON.stringify([...document.querySelectorAll(".fp-frame, .fp-panel")].map((node) => node.getBoundingClientRect()));
    same = now === places ? same + 1 : 0;
    places = now;
    if (same === 2) done(); else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


@contextlib.contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """Serves a folder with Python's own file server and yields its address."""
    port = free_port()
    command = [sys.executable, str(Path(__file__).with_name("serve_folder.py")), str(port), str(folder)]
    with served_command(command, f"http://127.0.0.1:{port}/") as url:
        yield url


@dataclass
class PlayerVisit:
    """A page with the player, and what went wrong on it: requests elsewhere, console errors, exceptions, dialogs."""

    page: Any
    problems: list[str] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        """Returns window.fusescope.state()."""
        return self.page.evaluate("() => window.fusescope.state()")

    def do(self, **action: Any) -> None:
        """Gives the player an action and waits until it is drawn."""
        self.page.evaluate("(action) => window.fusescope.dispatch(action)", action)
        self.drawn()

    def show(self, scenario: str) -> None:
        """Opens another run, or film, and waits until it is drawn."""
        if self.state()["scenario"] != scenario:
            self.do(type="load", scenario=scenario)
            self.wait(lambda: self.state()["scenario"] == scenario)
            self.drawn()

    def scene(self, number: int, scenario: str) -> None:
        """Shows a scene of the tour, once its run has come and is drawn."""
        self.do(type="scene", scene=number)
        self.await_scene(number, scenario)

    def await_scene(self, number: int, scenario: str) -> None:
        """Waits until a scene is on and its run has come and is drawn."""
        self.wait(lambda: (self.state()["scene"], self.state()["scenario"]) == (number, scenario))
        self.drawn()

    def drawn(self) -> None:
        """Waits for the frame that draws, and until nothing has moved for two more."""
        self.page.evaluate(STILL)

    def wait(self, check: Callable[[], Any], timeout_s: float = WAIT_MS / 1000) -> None:
        """Waits in Python: the page's policy forbids the evaluation of strings that a browser-side wait needs."""
        deadline = time.monotonic() + timeout_s
        while not check():
            assert time.monotonic() < deadline, "waited in vain"
            self.page.wait_for_timeout(50)

    def text(self, selector: str) -> str:
        """Returns the text of the first match, on one line."""
        return " ".join(self.page.locator(selector).first.inner_text().split())

    def ready(self) -> None:
        """Waits until the first picture is there and stands still."""
        self.wait(lambda: self.page.evaluate("() => performance.getEntriesByName('fusescope:first-picture').length > 0"))
        self.drawn()


@contextlib.contextmanager
def visiting_player(
    browser: Any,
    url: str,
    query: str = "",
    width: int = 1920,
    height: int = 1080,
    motion: str = "reduce",
    offline: bool = False,
    is_new: bool = False,
) -> Iterator[PlayerVisit]:
    """Opens the player in a browser context of its own and yields the visit once it has drawn.

    Args:
        is_new: on a page that has shown nothing before.
    """
    problems: list[str] = []
    own = (url.split("?")[0].rsplit("/", 1)[0], "data:", "blob:")
    listeners = {
        "request": lambda request: None if request.url.startswith(own) else problems.append(f"request to {request.url}"),
        "console": lambda message: problems.append(f"console: {message.text}") if message.type == "error" else None,
        "pageerror": lambda error: problems.append(f"exception: {error}"),
        "dialog": lambda dialog: problems.append(f"dialog: {dialog.message}"),
    }
    with borrowed_page(browser, width, height, motion, listeners, WAIT_MS, is_new) as page:
        page.context.set_offline(offline)
        visit = PlayerVisit(page, problems)
        page.goto(f"{url}?{query}" if query else url)
        visit.ready()
        yield visit
