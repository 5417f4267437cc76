"""Asks deployed Spaces whether they serve: the page, and the health of its model or the list of its recorded runs.

As a program, with Python's own library alone: python deploy/health.py <address> ...; ends with 1 where one does not serve.
"""

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Final, NamedTuple

# A Space that slept answers with an error page until it is built and its model is there.
PATIENCE_S: Final = 900.0
PAUSE_S: Final = 15.0
TITLE: Final = b"Fusescope"
# Where node renders the page first, the app's own routes stand below /gradio_api.
HEALTH: Final = ("healthz", "gradio_api/healthz")
RUNS: Final = "site.json"


class Answer(NamedTuple):
    """The status of an HTTP answer, 0 where none came, and its body or the reason."""

    status: int
    body: bytes


def ask(url: str, timeout_s: float = 60.0) -> Answer:
    """Returns the answer of an address."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"User-Agent": "fusescope-health"}), timeout=timeout_s) as answer:
            return Answer(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.read())
    except OSError as error:
        return Answer(0, str(error).encode())


def problem(url: str) -> str | None:
    """Returns one sentence on what does not serve at an address, None where all does."""
    base = url.rstrip("/") + "/"
    page = ask(base)
    if page.status != 200 or TITLE not in page.body:
        return f"{base} answers {page.status or page.body.decode(errors='replace')}, not with the page."
    if _json(ask(base + RUNS)).get("runs"):
        return None
    states = [found for found in (_json(ask(base + path)) for path in HEALTH) if "status" in found]
    if not states:
        return f"{base} serves the page, but neither {' nor '.join((RUNS, *HEALTH))} answers as this app does."
    if states[0]["status"] not in ("ready", "idle"):
        return f"{base} serves the page, but its model is {states[0]['status']}: {states[0].get('message', 'no reason is given')}"
    return None


def settled(url: str, patience_s: float = PATIENCE_S, pause_s: float = PAUSE_S) -> str | None:
    """Returns the problem that is still there after a while, None as soon as there is none."""
    deadline = time.monotonic() + patience_s
    while (found := problem(url)) is not None and time.monotonic() + pause_s < deadline:
        time.sleep(pause_s)
    return found


def main(urls: Sequence[str]) -> int:
    """Prints one line on each address; returns the exit code."""
    if not urls:
        print("health: no address is given; name at least one.", file=sys.stderr)
        return 2
    found = {url: settled(url) for url in urls}
    for url, sentence in found.items():
        print(sentence or f"{url} serves.")
    return int(any(found.values()))


def _json(answer: Answer) -> dict[str, object]:
    try:
        found = json.loads(answer.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
