"""Limits on HTTP itself: the size of a request, chunked or not, and the page's events."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.protection import MIB, Protection
from engine.serving.limits import RequestLimits
from engine.serving.quotas import Quotas

LIMITS = Protection(public=True, requests_per_minute=2, upload_mib_per_hour=1, max_request_mib=1)


class Echo:
    """Reads the whole body, and answers 200 with its length; `swallow` makes an answer of its own of any error while reading."""

    def __init__(self, swallow=False):
        self.swallow, self.bodies = swallow, []

    async def __call__(self, scope, receive, send):
        body, more, status = b"", True, 200
        try:
            while more:
                message = await receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
        except Exception:
            if not self.swallow:
                raise
            status = 400
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})


def ask(app, path, pieces=(b"{}",), method="POST", length=None, address="10.0.0.1", root=""):
    """Returns status and body of one request through an ASGI application."""
    sent, waiting = [], [{"type": "http.request", "body": piece, "more_body": i < len(pieces) - 1} for i, piece in enumerate(pieces)]
    headers = [] if length is None else [(b"content-length", str(length).encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "client": (address, 1), "root_path": root}

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    # In a thread of its own: the browser of other tests has a loop in this one.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, app(scope, receive, send)).result()
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def limited(echo):
    return RequestLimits(echo, LIMITS, Quotas(LIMITS), costly={7})


def test_a_long_body_is_refused_by_its_length_before_it_is_read(limited, echo):
    status, body = ask(limited, "/v1/documents", length=MIB + 1)
    assert status == 413 and "larger than 1 MiB" in json.loads(body)["error"]["message"] and echo.bodies == []


@pytest.mark.parametrize("swallow", [False, True])
def test_a_long_body_without_a_length_is_refused_where_it_ends(swallow):
    echo = Echo(swallow)
    limited = RequestLimits(echo, LIMITS, Quotas(LIMITS))
    status, body = ask(limited, "/v1/documents", [b"x" * (MIB // 2)] * 3)
    assert status == 413 and json.loads(body)["error"]["code"] == "request_too_large"
    assert sum(map(len, echo.bodies)) <= MIB


@pytest.mark.parametrize("length", [-1, "1e3", "9" * 40])
def test_a_length_that_is_none_is_refused(limited, length):
    assert ask(limited, "/v1/documents", length=length)[0] == 413


def test_bodies_within_the_limit_pass_unchanged(limited, echo):
    assert ask(limited, "/v1/documents", [b"a" * 10, b"b" * 10], length=20)[0] == 200
    assert echo.bodies == [b"a" * 10 + b"b" * 10]


def join(event, session="s1"):
    return [json.dumps({"fn_index": event, "session_hash": session, "data": []}).encode()]


def test_the_pages_events_are_charged_only_where_they_use_the_engine(limited, echo):
    for _ in range(9):
        assert ask(limited, "/gradio_api/queue/join", join(3))[0] == 200
    assert [ask(limited, "/gradio_api/queue/join", join(7))[0] for _ in range(3)] == [200, 200, 429]
    assert ask(limited, "/gradio_api/queue/join", join(7, "s2"))[0] == 200
    # The body reaches the page as it came.
    assert json.loads(echo.bodies[-1])["session_hash"] == "s2"


def test_the_page_shows_the_sentence_of_a_refusal(limited):
    for _ in range(2):
        ask(limited, "/gradio_api/call/compare")
    status, body = ask(limited, "/gradio_api/call/compare")
    assert status == 429 and json.loads(body)["detail"].startswith("More than 2 requests a minute")


def test_a_page_that_stands_below_a_path_has_the_same_quota(limited):
    """Whether the proxy in front takes the path away or not."""
    paths = ["/fs/gradio_api/call/compare", "/gradio_api/call/compare", "/fs/gradio_api/call/compare"]
    assert [ask(limited, path, root="/fs")[0] for path in paths] == [200, 200, 429]


def test_uploads_of_the_page_are_charged_by_their_bytes(limited):
    assert ask(limited, "/gradio_api/upload", length=MIB // 2)[0] == 200
    assert ask(limited, "/gradio_api/upload", length=MIB // 2)[0] == 200
    assert ask(limited, "/gradio_api/upload", length=MIB // 2)[0] == 429
    assert [ask(limited, "/gradio_api/upload", address="10.0.0.2")[0] for _ in range(2)] == [200, 429]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 100_000, b'"x"', b'{"fn_index": [7]}', '{"fn_index": 7}'.encode("utf-16")])
def test_a_body_that_is_no_event_is_the_pages_business(limited, body):
    assert ask(limited, "/gradio_api/queue/join", [body])[0] == 200


@pytest.mark.parametrize("number", ["7", 7.0, True, None, [7]])
def test_no_way_of_writing_a_number_goes_round_the_quota(limited, number):
    statuses = [ask(limited, "/gradio_api/queue/join", join(number))[0] for _ in range(3)]
    assert statuses == [200, 200, 429]


@pytest.fixture
def knowing(echo):
    return RequestLimits(echo, LIMITS, Quotas(LIMITS), costly={7}, events={3: "look", 7: "compare"})


@pytest.mark.parametrize("number", [8, -1, "8", 8.0, 10**30])
def test_an_event_of_a_page_of_an_earlier_start_is_told_to_load_again(knowing, echo, number):
    for path in ("/gradio_api/queue/join", "/gradio_api/run/predict", "/gradio_api/api/predict/"):
        status, body = ask(knowing, path, join(number))
        assert status == 404 and json.loads(body)["detail"].endswith("load the page again.")
    assert echo.bodies == []
    assert ask(knowing, "/gradio_api/queue/join", join(3))[0] == 200


@pytest.mark.parametrize("path", ["call/nonsense", "call/nonsense/", "call/v2/nonsense", "run/nonsense", "api/nonsense"])
def test_an_endpoint_that_is_none_is_named(knowing, echo, path):
    status, body = ask(knowing, f"/gradio_api/{path}")
    assert status == 404 and "'nonsense'" in json.loads(body)["detail"] and echo.bodies == []
    assert ask(knowing, f"/gradio_api/{path}".replace("nonsense", "compare"))[0] == 200


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"fn_index": [7]}', b'{"fn_index": null}', b'{"fn_index": "x"}', b'{"fn_index": 1e999}']
)
def test_what_is_no_number_of_an_event_is_still_the_pages_business(knowing, body):
    assert ask(knowing, "/gradio_api/queue/join", [body])[0] == 200
