"""The route of chat over a scripted engine: its forms, errors and ends."""

import json
import threading
import time

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from serving_world import QUESTION, ScriptedSession, answering, api_server, endless, failing, turn_of

from engine.chat.types import ChatStatus, ChatToken
from engine.errors import BadRequest, EngineError, ModelUnavailable, QueueFull, TimedOut, UnknownName
from engine.serving.routes import app_options

BODY = {"model": "tiny", "messages": QUESTION}
JSON = {"Content-Type": "application/json"}


def post(url, **fields):
    return httpx.post(f"{url}/v1/chat/completions", json=BODY | fields, timeout=30)


def events(response):
    """Returns the data of a stream's events, without comments."""
    return [line if line == "[DONE]" else json.loads(line) for line in _data(response.text)]


def test_a_whole_answer_has_openais_form_and_our_extras():
    with api_server(ScriptedSession(answering("In", " Vell"))) as url:
        answer = post(url).json()
    assert answer["object"] == "chat.completion" and answer["model"] == "tiny" and answer["id"].startswith("chatcmpl-")
    choice = answer["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "In Vell", "refusal": None} and choice["finish_reason"] == "stop"
    assert answer["usage"] == {
        "prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 6, "recomputed_tokens": 1},
    }  # fmt: skip
    extras = answer["fusescope"]
    assert extras["ttft_s"] == 0.25 and extras["provenance"]["mode"] == "live" and extras["citations"][0]["chunk_id"] == "d1"
    assert sum(extras["parts_s"].values()) == pytest.approx(extras["ttft_s"]) and extras["queue_wait_s"] >= 0


def test_a_stream_gives_the_same_answer_in_pieces_and_usage_where_asked():
    with api_server(ScriptedSession(answering("In", " Ve", "ll"))) as url:
        plain, full = post(url, stream=True), post(url, stream=True, stream_options={"include_usage": True})
    assert plain.headers["content-type"].startswith("text/event-stream")
    *parts, last = events(plain)
    assert last == "[DONE]" and len({part["id"] for part in parts}) == 1
    deltas = [part["choices"][0]["delta"] for part in parts]
    assert deltas[0] == {"role": "assistant", "content": ""} and [d.get("content") for d in deltas[1:]] == ["In", " Ve", "ll", None]
    assert parts[-1]["choices"][0]["finish_reason"] == "stop" and parts[-1]["fusescope"]["method"] == "qcfuse"
    assert not any("usage" in part for part in parts)
    *others, usage, last = events(full)
    assert all(part["usage"] is None for part in others), "as OpenAI's reference says"
    assert usage["choices"] == [] and usage["usage"]["total_tokens"] == 13 and last == "[DONE]"


def test_stop_texts_end_an_answer_whole_or_streamed():
    with api_server(ScriptedSession(answering("In Ve", "ll, a vil", "lage"))) as url:
        whole = post(url, stop=["a village", "zzz"]).json()["choices"][0]
        streamed = events(post(url, stream=True, stop="a village"))
    assert whole["message"]["content"] == "In Vell, " and whole["finish_reason"] == "stop"
    text = "".join(part["choices"][0]["delta"].get("content") or "" for part in streamed[:-1])
    assert text == "In Vell, "


def test_an_answer_that_reached_its_length_says_so():
    def script(request, cancelled):
        yield turn_of("", finish="length")

    with api_server(ScriptedSession(script)) as url:
        assert post(url).json()["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (BadRequest("The ratio is 7."), 400, None),
        (UnknownName("Unknown method 'x'."), 404, "not_found"),
        (QueueFull("16 wait."), 503, "queue_full"),
        (TimedOut("Too long."), 503, "timeout"),
        (ModelUnavailable("No model."), 503, "model_unavailable"),
        (EngineError("Broken."), 500, "engine_error"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_before_the_answer_has_its_status_and_one_sentence(error, status, code):
    with api_server(ScriptedSession(failing(error))) as url:
        for stream in (False, True):
            response = post(url, stream=stream)
            assert response.status_code == status
            assert response.json()["error"] | {"type": ""} == {"message": str(error), "type": "", "param": None, "code": code}
            assert ("retry-after" in response.headers) == (status == 503 and code == "queue_full")


def test_an_error_in_the_middle_of_a_stream_is_its_last_event():
    broken = failing(EngineError("The disk is gone."), (ChatStatus("x", 0.0), ChatToken("In")))
    with api_server(ScriptedSession(broken)) as url:
        found = events(post(url, stream=True))
    assert found[-1]["error"]["message"] == "The disk is gone." and "[DONE]" not in found


def test_an_unexpected_error_shows_no_trace_and_the_next_request_works():
    session = ScriptedSession(failing(RuntimeError("secret detail")))
    with api_server(session) as url:
        response = post(url)
        assert response.status_code == 500 and "secret" not in response.text and "Traceback" not in response.text
        session.script = answering("Fine.")
        assert post(url).json()["choices"][0]["message"]["content"] == "Fine."


def test_a_client_that_goes_away_stops_its_request():
    for stream in (True, False):
        session = ScriptedSession(endless)
        with api_server(session) as url:
            if stream:
                with httpx.stream("POST", f"{url}/v1/chat/completions", json=BODY | {"stream": True}) as response:
                    next(response.iter_raw())
            else:
                with pytest.raises(httpx.ReadTimeout):
                    httpx.post(f"{url}/v1/chat/completions", json=BODY, timeout=0.5)
            assert session.ended.wait(10), f"stream={stream}"


def test_bodies_and_addresses_that_do_not_hold_are_answered_in_openais_form():
    with api_server(ScriptedSession(answering("x"))) as url:
        found = [
            httpx.post(f"{url}/v1/chat/completions", content=b"{", headers={"Content-Type": "application/json"}),
            post(url, model="gpt-4"), post(url, n=3), httpx.get(f"{url}/v1/nothing"), httpx.get(f"{url}/v1/chat/completions"),
        ]  # fmt: skip
    assert [response.status_code for response in found] == [400, 404, 400, 404, 405]
    assert [response.json()["error"]["param"] for response in found] == [None, "model", "n", None, None]
    assert found[1].json()["error"]["code"] == "model_not_found" and "'tiny'" in found[1].json()["error"]["message"]


def test_a_body_of_another_type_is_told_what_to_send():
    with api_server(ScriptedSession(answering("x"))) as url:
        address, body = f"{url}/v1/chat/completions", json.dumps(BODY).encode()
        untyped = httpx.post(address, content=body)
        foreign = httpx.post(address, content=body.replace(b"lighter", "Gr\xf6\xdfe".encode("latin-1")), headers=JSON)
    assert untyped.status_code == foreign.status_code == 400
    assert "Content-Type: application/json" in untyped.json()["error"]["message"]
    assert "UTF-8" in foreign.json()["error"]["message"]


@pytest.mark.parametrize(
    "place", ['"content": "cut \\ud83d"', '"content": "x", "\\ud83d": 1', '"content": [{"type": "\\ud83d", "text": "x"}]']
)
def test_half_a_character_is_the_clients_fault(place):
    body = f'{{"model": "tiny", "messages": [{{"role": "user", {place}}}]}}'.encode()
    with api_server(ScriptedSession(answering("x"))) as url:
        response = httpx.post(f"{url}/v1/chat/completions", content=body, headers=JSON)
        inside = {"role": "tool", "content": '{"data": [{"id": "\\ud83d", "text": "x"}]}'}
        tool = post(url, messages=[*QUESTION, inside])
    assert response.status_code == tool.status_code == 400
    assert "half a character" in tool.json()["error"]["message"]


def test_line_ends_of_unicode_do_not_cut_events():
    """httpx and others split lines at them, which an event's data may hold."""
    text = "One\u2028two\u2029three\x85four"
    with (
        api_server(ScriptedSession(answering(text))) as url,
        httpx.stream("POST", f"{url}/v1/chat/completions", json=BODY | {"stream": True}) as response,
    ):
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    parts = [json.loads(line) for line in lines if line != "[DONE]"]
    assert [part["choices"][0]["delta"].get("content") for part in parts] == ["", text, None]


def test_fields_that_clients_send_as_null_are_left_out():
    with api_server(ScriptedSession(answering("x"))) as url:
        answer = post(url, stream=None, stream_options={"include_usage": None}, stop=None, max_tokens=None, temperature=None, seed=None)
    assert answer.json()["choices"][0]["message"]["content"] == "x"


def test_the_engine_is_told_the_stop_texts():
    asked = []

    def script(request, cancelled):
        asked.append(request.stops)
        yield turn_of("")

    with api_server(ScriptedSession(script)) as url:
        post(url), post(url, stop="END"), post(url, stop=["a", "b"])
    assert asked == [(), ("END",), ("a", "b")]


def test_a_waiting_stream_tells_its_place_in_lines_that_clients_pass_over():
    def script(request, cancelled):
        yield ChatStatus("Waiting: 2 requests ahead", 0.0, 2)
        time.sleep(0.8)
        yield from answering("Done.")(request, cancelled)

    with api_server(ScriptedSession(script)) as url:
        response = post(url, stream=True)
    assert ": waiting, 2 ahead\n\n" in response.text
    assert [part["choices"][0]["delta"].get("content") for part in events(response)[1:-2]] == ["Done."]


def test_a_stream_has_no_event_before_its_first_token():
    """Clients take the time of the first event for the time to the first token."""
    seen = threading.Event()

    def script(request, cancelled):
        yield ChatStatus("Computing", 0.5)
        assert seen.wait(30)
        yield from (ChatToken("Vell"), turn_of("Vell"))

    with (
        api_server(ScriptedSession(script)) as url,
        httpx.stream("POST", f"{url}/v1/chat/completions", json=BODY | {"stream": True}, timeout=30) as response,
    ):
        lines = response.iter_lines()
        assert next(lines) == ": working"
        seen.set()
        data = [line for line in lines if line.startswith("data: ")]
    assert [json.loads(line.removeprefix("data: "))["choices"][0]["delta"] for line in data[:3]] == [
        {"role": "assistant", "content": ""}, {"content": "Vell"}, {},
    ]  # fmt: skip


def test_an_answer_without_a_word_is_a_whole_stream():
    def script(request, cancelled):
        yield turn_of("")

    with api_server(ScriptedSession(script)) as url:
        first, last = map(json.loads, _data(post(url, stream=True).text)[:2])
    assert first["choices"][0]["delta"]["role"] == "assistant" and last["choices"][0]["finish_reason"] == "stop"


def _data(text):
    return [line.removeprefix("data: ") for line in text.split("\n\n") if line.startswith("data: ")]


def test_a_forced_call_runs_no_model():
    tool = {"type": "function", "function": {"name": "search_documents"}}
    with api_server(ScriptedSession(failing(AssertionError("the model was run")))) as url:
        whole = post(url, tools=[tool], tool_choice="required").json()
        streamed = events(post(url, tools=[tool], tool_choice="required", stream=True))
    call = whole["choices"][0]["message"]["tool_calls"][0]
    assert (
        whole["choices"][0]["finish_reason"] == "tool_calls"
        and json.loads(call["function"]["arguments"])["query"] == QUESTION[0]["content"]
    )
    assert "forced" in whole["fusescope"]["notices"][0] and whole["usage"]["total_tokens"] == 0
    assert streamed[0]["choices"][0]["delta"]["tool_calls"][0]["index"] == 0 and streamed[-1] == "[DONE]"


@pytest.mark.parametrize("passed_on", ["", "/fs"], ids=["taken away", "passed on"])
def test_the_routes_stand_where_the_page_stands_behind_a_proxy(passed_on):
    """Proxies take the path of the page (GRADIO_ROOT_PATH) away before they pass a request on, or they do not."""
    client = TestClient(FastAPI(**app_options(ScriptedSession(answering("Vell")))), root_path="/fs")
    for path in ("/v1/models", "/gradio_api/v1/models", "/v1/models/tiny", "/healthz", "/metrics"):
        assert client.get(passed_on + path).status_code == 200, path
    answer = client.post(f"{passed_on}/v1/chat/completions", json=BODY).json()
    assert answer["choices"][0]["message"]["content"] == "Vell"
    assert client.get(f"{passed_on}/v1/nothing").json()["error"]["code"] == "unknown_url"


def test_models_are_listed_and_found_by_name():
    with api_server(ScriptedSession(answering("x"))) as url:
        assert [model["id"] for model in httpx.get(f"{url}/v1/models").json()["data"]] == ["tiny"]
        assert httpx.get(f"{url}/v1/models/fusescope").json()["id"] == "tiny"
        assert httpx.get(f"{url}/gradio_api/v1/models").json()["data"][0]["id"] == "tiny"
        assert httpx.get(f"{url}/v1/models/a/b").status_code == 404
