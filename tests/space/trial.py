"""Starts an assembled Space as the hub would, in an environment made from its own requirements, with no network, and opens its page.

As a program: python tests/space/trial.py <folder of the Space> <its python> <folder with the package spaces>

It takes a network of its own that has nothing but the loopback, where the kernel lets it; otherwise it says so and blocks by environment.
Prints one JSON line for every start, and ends with 1 where one did not hold.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from launch import CHROMIUM, CHROMIUM_ARGS, free_port, served_command, visiting  # noqa: E402

HUB_MODEL = "models--HuggingFaceTB--SmolLM2-135M-Instruct"
STAND_IN = Path(__file__).resolve().parent / "zerogpu_stand_in.py"
ALONE = "FUSESCOPE_TRIAL_ALONE"
# On a Space, and nowhere else, Gradio's own page asks for the hub's header and its fonts; without a network the console says so.
OF_GRADIO = (
    "request to https://fonts.googleapis.com/",
    "request to https://huggingface.co/api/spaces/",
    "console: Failed to load resource: net::ERR_INTERNET_DISCONNECTED",
    "console: Failed to load resource: net::ERR_NAME_NOT_RESOLVED",
    "console: Space not found",
)


@dataclass(frozen=True)
class Start:
    """One way to start: with the package `spaces` or not, rendered by node or not, the model preloaded or absent, as on ZeroGPU or not."""

    has_spaces: bool
    has_ssr: bool
    has_model: bool = False
    has_zerogpu: bool = False


STARTS = (
    *(Start(spaces, ssr) for spaces in (False, True) for ssr in (False, True)),
    Start(True, True, has_model=True),
    Start(True, False, has_model=True, has_zerogpu=True),
)


@contextlib.contextmanager
def space_home(has_model: bool) -> Iterator[Path]:
    """Yields a fresh home folder; with the model, the hub's cache in it is as `preload_from_hub` leaves it."""
    with tempfile.TemporaryDirectory(prefix="fusescope-space-") as name:
        if has_model:
            from engine.model.bundled import bundled_folder
            from engine.settings import Settings

            cached, commit = Path(name) / ".cache/huggingface/hub" / HUB_MODEL, "0" * 40
            shutil.copytree(bundled_folder(Settings.from_env()), cached / "snapshots" / commit, copy_function=os.symlink)
            (cached / "refs").mkdir()
            (cached / "refs" / "main").write_text(commit)
        yield Path(name)


def space_env(home: Path, port: int, start: Start, spaces: Path) -> dict[str, str]:
    """Returns the variables that the hub's container sets, on top of those without which nothing runs."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "SYSTEM": "spaces",
        "SPACE_ID": "fusescope/trial",
        "GRADIO_SERVER_NAME": "0.0.0.0",
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_NUM_PORTS": "1",
        "GRADIO_SSR_MODE": str(start.has_ssr),
        "PYTHONUNBUFFERED": "1",
        # A busy machine is no reason for a start to fail.
        "FUSESCOPE_TIMEOUT_S": "600",
    }
    if start.has_spaces:
        env["PYTHONPATH"] = str(spaces)
    if ALONE not in os.environ:
        closed = "http://127.0.0.1:9"
        env |= {"HTTP_PROXY": closed, "HTTPS_PROXY": closed, "NO_PROXY": "localhost,127.0.0.1", "HF_HUB_OFFLINE": "1"}
    return env


def health(url: str, has_ssr: bool) -> Mapping[str, Any]:
    """Returns what the health route answers; it stands below /gradio_api where node renders the page."""
    address = f"{url}{'gradio_api/' if has_ssr else ''}healthz"
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def settled(url: str, has_ssr: bool, timeout_s: float = 300.0) -> Mapping[str, Any]:
    """Returns the health once nothing is loading any more."""
    deadline = time.monotonic() + timeout_s
    while (found := health(url, has_ssr))["status"] in ("idle", "loading") and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def tried(folder: Path, python: Path, spaces: Path, start: Start, browser: Any) -> dict[str, Any]:
    """Returns what was seen of one start; its `problems` are empty where all held."""
    port = free_port()
    with space_home(start.has_model) as home:
        # The hub runs a copy; Python's own caches must not stay in the folder that is pushed.
        shutil.copytree(folder, home / "app")
        url, begun = f"http://127.0.0.1:{port}/", time.monotonic()
        # `env -i` leaves nothing of this process's environment, as in a container.
        variables = [f"{name}={value}" for name, value in space_env(home, port, start, spaces).items()]
        program = str(STAND_IN) if start.has_zerogpu else "app.py"
        command = ["env", "-i", "-C", str(home / "app"), *variables, str(python), program]
        with served_command(command, url, timeout_s=300):
            first_s = time.monotonic() - begun
            with visiting(browser, url, query="tab=fuse") as visit:
                shown = visit.page.locator("#fuse-banner").inner_text().split("\n")[0]
                found = settled(url, start.has_ssr)
                # Once is enough to see that it runs.
                visit.page.locator("#fuse-advanced").get_by_role("button", name="Advanced").click()
                visit.page.locator("#fuse-repeats input[type=number]").fill("1")
                visit.page.keyboard.press("Tab")
                visit.page.locator("#fuse-run").click()
                visit.page.locator("#fuse-banner .fs-badge-live, #fuse-status .fs-status-error").first.wait_for(timeout=600_000)
                is_live = visit.page.locator("#fuse-banner .fs-badge-live").count() == 1
                seen = {
                    "opens_with": shown,
                    "health": found,
                    "after_run": visit.status(),
                    "problems": [text for text in visit.problems if not text.startswith(OF_GRADIO)],
                }
                seen["banner"] = visit.page.locator("#fuse-banner").inner_text().replace("\n", " ")[:160]
    expected = "ready" if start.has_model else "failed"
    seen["problems"] += [] if is_live == start.has_model else [f"Run ended with {seen['after_run']!r}"]
    seen["problems"] += [] if found["status"] == expected else [f"the model is {found['status']}, not {expected}"]
    # A forked process computes with one thread, the one that serves with as many as there are cores.
    seen["problems"] += [] if not start.has_zerogpu or "1 threads" in seen["banner"] else [f"no call was lent: {seen['banner']!r}"]
    seen["problems"] += [] if "REPLAY" in shown else [f"the page opens with {shown!r}, not a recorded run"]
    return {**asdict(start), "first_answer_s": round(first_s, 1), **seen}


def main(folder: str, python: str, spaces: str) -> int:
    """Tries every way to start; returns the exit code."""
    if not CHROMIUM.is_file():
        print(f"trial: there is no Chromium at {CHROMIUM}; install it, as the page has to be opened.", file=sys.stderr)
        return 2
    from playwright.sync_api import sync_playwright

    failed = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=CHROMIUM_ARGS)
        for start in STARTS:
            seen = tried(Path(folder).resolve(), Path(python).absolute(), Path(spaces).resolve(), start, browser)
            print(json.dumps(seen, ensure_ascii=False), flush=True)
            failed += bool(seen["problems"])
        browser.close()
    return int(failed > 0)


def alone(arguments: list[str]) -> int:
    """Runs this program again in a network of its own; returns its exit code, or that of `main` where there can be none."""
    inside = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        print("trial: no network of its own can be had here; the network is blocked by environment variables only.", file=sys.stderr)
        return main(*arguments)
    return subprocess.run([*inside, sys.executable, __file__, *arguments], env={**os.environ, ALONE: "1"}, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]) if ALONE in os.environ else alone(sys.argv[1:]))
