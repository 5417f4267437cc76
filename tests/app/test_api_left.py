"""A program that asks an endpoint and leaves: the engine stops, as it does for a page that is closed. A server, no browser."""

import json
import threading
import time

import httpx
import pytest
from fakes import FakeRunFiles, FakeSession
from gradio_client import Client
from launch import free_port

from engine.chat.types import ChatToken
from engine.replays import Replays
from engine.turns import Turns
from engine.types import Status
from viz.panels.page import build, launch_options

ASKED = {
    "replay": ["balanced", "saecache", "5 %", 0],
    "compare": ["harbour", "Why?", 0.3, "full"],
    "answer": ["Why?", "A text.", "", "full", 0.3],
}
PATIENCE_S = 60


class Endless:
    """Work that tells what it is doing until it is closed; `closed` is set by that."""

    def __init__(self):
        self.closed = threading.Event()

    def stream(self, item):
        """Yields the item for ever."""
        try:
            while True:
                yield item
                time.sleep(0.05)
        finally:
            self.closed.set()


class EndlessReplays(Replays):
    """Replays that never end."""

    def __init__(self, work):
        super().__init__(Turns())
        self.work = work

    def stream(self, requests, cancelled=lambda: False):
        """Tells of the first policy for ever."""
        return self.work.stream(Status(f"Replaying {requests[0].policy}", 0.5))


class EndlessSession(FakeSession):
    """Nothing that is asked of it ever ends."""

    def __init__(self, work):
        super().__init__()
        self.work, self.replays = work, EndlessReplays(work)

    def stream(self, request, methods):
        """Tells of a run for ever."""
        return self.work.stream(Status("Running", 0.5))

    def chat(self, request):
        """Writes an answer for ever."""
        return self.work.stream(ChatToken("and "))


def serve(session):
    """Returns a page that serves in a thread of this process, and its address."""
    page = build(session, FakeRunFiles())
    options = launch_options() | {"mcp_server": False}
    _, url, _ = page.launch(server_name="127.0.0.1", server_port=free_port(), quiet=True, prevent_thread_lock=True, **options)
    return page, url.replace("localhost", "127.0.0.1").rstrip("/")


@pytest.mark.parametrize("name", ASKED)
def test_work_is_stopped_when_its_caller_has_gone(name):
    work = Endless()
    page, url = serve(EndlessSession(work))
    try:
        with httpx.Client(base_url=f"{url}/gradio_api/call/{name}", trust_env=False, timeout=PATIENCE_S) as client:
            number = client.post("", json={"data": ASKED[name]}).json()["event_id"]
            with client.stream("GET", f"/{number}") as answer:
                told = next(json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith('data: [{"status"'))
                assert not work.closed.is_set()
        assert set(told[0]) == {"status", "fraction", "num_ahead"}
        assert work.closed.wait(PATIENCE_S), "the caller has gone and the work goes on"
    finally:
        page.close()


def test_a_caller_who_stays_gets_the_result_after_what_it_was_told():
    page, url = serve(FakeSession())
    try:
        client = Client(url, verbose=False)
        job = client.submit("balanced", "saecache", "2 %", 1, api_name="/replay")
        assert list(job.result(PATIENCE_S)["policies"]) == ["lru", "saecache", "min"]
        assert all("status" in line for line in job.outputs()[:-1]) and len(job.outputs()) > 1
    finally:
        page.close()
