"""The app in a process of its own, for benchmarks that visit it; or one that runs already."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from engine.errors import EngineError

ROOT = Path(__file__).resolve().parents[2]
START_S = 600.0


@dataclass(frozen=True, slots=True)
class Served:
    """A server's address, and its process where it was started here."""

    url: str
    process: psutil.Process | None

    def resident_mb(self) -> float | None:
        """Returns the server's resident memory, MB. The processes that read uploaded files come and go and are not counted."""
        return None if self.process is None else self.process.memory_info().rss / 1e6


@contextlib.contextmanager
def served_app(url: str | None = None) -> Iterator[Served]:
    """Yields the server at an address, or the app started on a free port, once its model is there. Raises EngineError."""
    if url:
        _wait_until_ready(url, None)
        yield Served(url, None)
        return
    port = _free_port()
    with tempfile.TemporaryFile() as log:
        started = subprocess.Popen(
            [sys.executable, str(ROOT / "app.py")],
            cwd=ROOT,
            env=os.environ | {"HOST": "127.0.0.1", "PORT": str(port)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            _wait_until_ready(address, started)
            yield Served(address, psutil.Process(started.pid))
        finally:
            started.terminate()
            try:
                started.wait(20)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait(20)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes] | None) -> None:
    deadline, last = time.monotonic() + START_S, "it does not answer"
    while time.monotonic() < deadline:
        if process is not None and process.poll() is not None:
            raise EngineError(f"The app ended with code {process.returncode} before it answered; run `python app.py` to see why.")
        try:
            answer = httpx.get(f"{url}/healthz", timeout=5, trust_env=False)
            last = answer.json().get("message", last)
            if answer.status_code == 200 and answer.json()["status"] == "ready":
                return
            if answer.json()["status"] == "failed":
                raise EngineError(f"The app at {url} has no model: {last}")
        except (httpx.HTTPError, ValueError):
            pass
        time.sleep(0.1)
    raise EngineError(f"The app at {url} was not ready within {START_S:.0f} s: {last}.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
