"""Starts the page in a process of its own on a free port, and visits it. Reusable for any session.

    with served("fakes:FakeSession") as url, visiting(browser, url) as visit: ...

As a program: python tests/launch.py <port> <module:factory> [json of keyword arguments].
"""

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pages import borrowed_page

ROOT = Path(__file__).resolve().parents[1]

# Pictures are drawn anew some time after the window has changed: it is over once each is as wide as its place.
DRAWN_TO_FIT = """() => [...document.querySelectorAll(".js-plotly-plot")].filter((plot) => plot.clientWidth)
  .every((plot) => plot.querySelector(".main-svg")?.clientWidth === plot.clientWidth)"""
# How long a page may take for what it was asked, in milliseconds: no test is about a time, so a slow machine fails none.
WAIT_MS = 180_000
CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def free_port() -> int:
    """Returns a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_up(url: str, process: subprocess.Popen[bytes], timeout_s: float = WAIT_MS / 1000) -> None:
    """Returns once the address answers. Raises RuntimeError where the process ends or time runs out."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the page ended with code {process.returncode} before it answered")
        with contextlib.suppress(urllib.error.URLError, OSError), opener.open(url, timeout=5):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{url} did not answer within {timeout_s:.0f} s")


@contextlib.contextmanager
def served_command(
    command: list[str], url: str, env: dict[str, str] | None = None, timeout_s: float = WAIT_MS / 1000, is_awaited: bool = True
) -> Iterator[str]:
    """Runs a server command, yields its address once it answers, and ends exactly that process (group) afterwards.

    Args:
        is_awaited: whether to yield once it answers; at once otherwise.
    """
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **(env or {})}, start_new_session=True)
    try:
        if is_awaited:
            wait_until_up(url, process, timeout_s)
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@contextlib.contextmanager
def served(
    factory: str = "fakes:FakeSession", port: int | None = None, ssr: bool = False, is_awaited: bool = True, **arguments: Any
) -> Iterator[str]:
    """Serves the page over `module:factory(**arguments)` and yields its address.

    Args:
        ssr: whether node renders it first.
        is_awaited: whether to yield once it answers; at once otherwise.
    """
    port = port or free_port()
    env = {
        "GRADIO_SSR_MODE": str(ssr),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "NO_PROXY": "localhost,127.0.0.1",
    }
    command = [sys.executable, str(Path(__file__).resolve()), str(port), factory, json.dumps(arguments)]
    with served_command(command, f"http://127.0.0.1:{port}/", env, is_awaited=is_awaited) as url:
        yield url


@dataclass
class Visit:
    """A browser page, and what went wrong on it so far: requests to other hosts, console errors, uncaught exceptions."""

    page: Any
    problems: list[str] = field(default_factory=list)

    def status(self) -> str:
        """Returns the status line's text."""
        return str(self.page.locator("#fuse-status").inner_text()).replace("\n", " ")

    def run_and_wait(self) -> None:
        """Presses Run and waits for the LIVE badge."""
        self.page.locator("#fuse-run").click()
        self.page.locator("#fuse-banner .fs-badge-live").wait_for()

    def ask(self, question: str) -> None:
        """Types a question into the Fuse tab and presses Run."""
        field = self.page.locator("#fuse-question input")
        field.fill(question)
        field.press("Enter")
        self.page.locator("#fuse-run").click()

    def wait_until_it_fits(self, width: int | None = None, height: int = 1080) -> None:
        """Waits until nothing reaches over the window's right edge, once the pictures are drawn; in a window of this size, where given."""
        if width:
            self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_function(DRAWN_TO_FIT)
        self.page.wait_for_function("() => document.documentElement.scrollWidth <= window.innerWidth")


@contextlib.contextmanager
def visiting(
    browser: Any,
    url: str,
    width: int = 1920,
    height: int = 1080,
    theme: str = "light",
    query: str = "",
    ready: str = "#fuse-kv .js-plotly-plot .main-svg",
    motion: str = "reduce",
) -> Iterator[Visit]:
    """Opens the page in a browser context of its own, waits until what is last to come (`ready`) is there, and yields the visit."""
    problems: list[str] = []
    own = (url, "data:", "blob:")
    listeners = {
        "request": lambda request: None if request.url.startswith(own) else problems.append(f"request to {request.url}"),
        "console": lambda message: problems.append(f"console: {message.text}") if message.type == "error" else None,
        "pageerror": lambda error: problems.append(f"exception: {error}"),
    }
    with borrowed_page(browser, width, height, motion, listeners, WAIT_MS) as page:
        page.goto(f"{url}?__theme={theme}{'&' if query else ''}{query}")
        page.locator(ready).first.wait_for()
        yield Visit(page, problems)


def main(port: str, factory: str, arguments: str = "{}") -> None:
    """Serves until killed; a fake session gets fake run files."""
    from viz.panels.page import build, launch_options

    module_name, _, name = factory.partition(":")
    module = importlib.import_module(module_name)
    session = getattr(module, name)(**json.loads(arguments))
    files = module.FakeRunFiles() if hasattr(module, "FakeRunFiles") else None
    build(session, files).launch(server_name="127.0.0.1", server_port=int(port), quiet=True, **launch_options())


if __name__ == "__main__":
    main(*sys.argv[1:])
