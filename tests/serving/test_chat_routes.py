"""The route of chat over a scripted engine: its forms, errors and ends."""

import json
import time

import httpx
import pytest
from serving_world import QUESTION, ScriptedSession, answering, api_server, endless, failing, turn_of

from engine.chat.types import ChatStatus, ChatToken
from engine.errors import BadRequest, EngineError, ModelUnavailable, QueueFull, TimedOut, UnknownName

BODY = {"model": "tiny", "messages": QUESTION}


def post(url, **fields):
    return httpx.post(f"{url}/v1/chat/completions", json=BODY | fields, timeout=30)


def events(response):
    """Returns the data of a stream's events, without comments."""
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


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
    *_, usage, last = events(full)
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


def test_a_waiting_stream_tells_its_place_in_lines_that_clients_pass_over():
    def script(request, cancelled):
        yield ChatStatus("Waiting: 2 requests ahead", 0.0, 2)
        time.sleep(0.8)
        yield from answering("Done.")(request, cancelled)

    with api_server(ScriptedSession(script)) as url:
        response = post(url, stream=True)
    assert ": waiting, 2 ahead\n\n" in response.text
    assert [part["choices"][0]["delta"].get("content") for part in events(response)[1:-2]] == ["Done."]


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


def test_models_are_listed_and_found_by_name():
    with api_server(ScriptedSession(answering("x"))) as url:
        assert [model["id"] for model in httpx.get(f"{url}/v1/models").json()["data"]] == ["tiny"]
        assert httpx.get(f"{url}/v1/models/fusescope").json()["id"] == "tiny"
        assert httpx.get(f"{url}/gradio_api/v1/models").json()["data"][0]["id"] == "tiny"
        assert httpx.get(f"{url}/v1/models/a/b").status_code == 404
