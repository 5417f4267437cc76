"""The app as a user starts it, `python app.py`, on a tiny model, in a process whose output is kept."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from launch import ROOT, WAIT_MS, free_port

from engine.model.tiny import byte_tokenizer, tiny_hf_model


@dataclass(frozen=True)
class App:
    """A running app: its address, its folder, the file of what it prints."""

    url: str
    folder: Path
    log: Path


def save_tiny_model(folder: Path) -> Path:
    """Saves a tiny model whose context holds a scenario in bytes, and returns its folder."""
    model = tiny_hf_model("llama")
    model.config.max_position_embeddings = 32_768
    model.save_pretrained(folder / "tiny")
    byte_tokenizer().save_pretrained(folder / "tiny")
    return folder / "tiny"


@contextmanager
def running_app(folder: Path, **env: str) -> Iterator[App]:
    """Yields the app once its model is there."""
    port, log = free_port(), folder / "app.log"
    own = {
        "PORT": str(port), "FUSESCOPE_MODEL": str(save_tiny_model(folder)), "FUSESCOPE_CACHE": str(folder / "cache"),
        "FUSESCOPE_THREADS": "1", "OMP_NUM_THREADS": "1", "GRADIO_TEMP_DIR": str(folder / "gradio"), "NO_PROXY": "localhost,127.0.0.1",
    }  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "app.py")], cwd=ROOT, env=os.environ | own | env, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield App(_ready(f"http://127.0.0.1:{port}", process, log), folder, log)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def _ready(url: str, process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + WAIT_MS / 1000
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"{url}/healthz", trust_env=False, timeout=5).json()["status"] == "ready":
                return url
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"not ready in time: {log.read_text()}")
