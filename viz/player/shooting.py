"""What taking pictures needs: a browser, servers for files and for the page, small PNGs, a moving WebP. Knows nothing of what is shown."""

import contextlib
import functools
import http.server
import importlib.util
import io
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Self

ROOT: Final = Path(__file__).resolve().parents[2]
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
ARGS: Final = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")
MAX_PNG_BYTES, MAX_FILM_BYTES = 200_000, 2_000_000
START_S: Final = 180.0


def tools() -> Callable[[], AbstractContextManager[Any]]:
    """Returns what opens the browser. Raises SystemExit with one sentence where something is missing."""
    missing = [name for name, module in (("playwright", "playwright"), ("pillow", "PIL")) if importlib.util.find_spec(module) is None]
    if missing:
        raise SystemExit(f"Screenshots need {' and '.join(missing)}: pip install -r requirements-test.txt.")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise SystemExit(f"Screenshots need a browser and found none of {', '.join(BROWSERS)} on the path; install Debian's chromium.")
    return functools.partial(_browser, found)


@contextlib.contextmanager
def _browser(path: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGS))
        yield browser
        browser.close()


class Picture:
    """A browser page of one size, seen by eyes of one kind; a context manager."""

    def __init__(self, browser: Any, size: tuple[int, int], deficiency: str | None) -> None:
        self._context = browser.new_context(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce", locale="en-GB")
        self.page = self._context.new_page()
        if deficiency:
            self._context.new_cdp_session(self.page).send("Emulation.setEmulatedVisionDeficiency", {"type": deficiency})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()

    def wait(self, check: str, timeout_s: float = 120.0) -> None:
        """Waits until a function of the page returns true; asked from here, as the site's policy forbids the browser's own wait."""
        deadline = time.monotonic() + timeout_s
        while not self.page.evaluate(check):
            if time.monotonic() > deadline:
                raise SystemExit(f"{self.page.url} showed nothing within {timeout_s:.0f} s.")
            self.page.wait_for_timeout(100)


def small_png(png: bytes, limit: int = MAX_PNG_BYTES) -> bytes:
    """Returns the picture as a PNG of at most `limit` bytes, with as large a palette as that allows."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colors in (256, 128, 64, 32):
        packed = io.BytesIO()
        picture.quantize(colors, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(packed, "PNG", optimize=True)
        if packed.tell() <= limit:
            return packed.getvalue()
    raise SystemExit(f"A picture of {picture.size} does not fit {limit:,} bytes with 32 colours; choose a smaller size.")


def moving(frames: Iterator[bytes], frame_ms: int, hold_ms: int, limit: int = MAX_FILM_BYTES) -> bytes:
    """Returns PNG frames as one WebP that starts anew after its last frame has stood for `hold_ms`."""
    from PIL import Image

    pictures = [Image.open(io.BytesIO(frame)).convert("RGB") for frame in frames]
    durations = [frame_ms] * (len(pictures) - 1) + [hold_ms]
    for quality in (80, 65, 50, 35):
        packed = io.BytesIO()
        pictures[0].save(
            packed,
            "WEBP",
            save_all=True,
            append_images=pictures[1:],
            duration=durations,
            loop=0,
            quality=quality,
            method=4,
            minimize_size=True,
        )
        if packed.tell() <= limit:
            return packed.getvalue()
    raise SystemExit(f"{len(pictures)} frames do not fit {limit:,} bytes; take fewer or smaller ones.")


@contextlib.contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """Serves a folder from a thread and yields its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextlib.contextmanager
def page_server() -> Iterator[str]:
    """Starts app.py on a free port, yields its address, and ends exactly that process afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env={**os.environ, "PORT": str(port), "HOST": "127.0.0.1"})
    try:
        url = f"http://127.0.0.1:{port}/"
        _wait_until_up(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    opener, deadline = urllib.request.build_opener(urllib.request.ProxyHandler({})), time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"app.py ended with code {process.returncode} before it answered.")
        with contextlib.suppress(urllib.error.URLError, OSError), opener.open(url, timeout=5):
            return
        time.sleep(0.2)
    raise SystemExit(f"app.py did not answer within {START_S:.0f} s.")
