"""A server that strangers use: quotas, the queue's bound, listed models, the password, time."""

import threading
import time
from dataclasses import replace

import gradio as gr
import httpx
import openai
import pytest
from serving_world import QUESTION, SESSION, ScriptedSession, answering, api_server, tiny_session

from engine.chat.types import ChatMessage, ChatRequest
from engine.errors import ModelUnavailable, QueueFull, TimedOut
from engine.protection import Protection
from engine.settings import Settings, read_protection
from engine.turns import Turns, within
from viz.panels.api import make_replay

BODY = {"model": "tiny", "messages": QUESTION}


def scripted(protection):
    return ScriptedSession(answering("In", " Vell"), settings=replace(Settings(model="tiny"), protection=protection))


def test_the_environment_makes_a_public_server():
    found = read_protection({"FUSESCOPE_PUBLIC": "1", "FUSESCOPE_MODELS": "a/b, c/d", "FUSESCOPE_TOKENS_PER_HOUR": "5"})
    assert found.public and found.models == ("a/b", "c/d") and found.tokens_per_hour == 5
    assert found.requests_per_minute > 0 and found.timeout_s > 0 and found.upload_mib_per_hour > 0
    assert found.replay_s > 0 and read_protection({"FUSESCOPE_REPLAY_S": "7.5"}).replay_s == 7.5
    private = read_protection({})
    assert private == Protection() and not private.requests_per_minute


def test_requests_beyond_the_quota_get_the_openai_clients_own_error():
    protection = Protection.for_public(requests_per_minute=3)
    with (
        api_server(scripted(protection)) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="x", default_headers=SESSION, max_retries=0) as client,
    ):
        for _ in range(3):
            client.models.list()
        with pytest.raises(openai.RateLimitError, match="More than 3 requests a minute") as caught:
            client.chat.completions.create(**BODY)
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 21 and caught.value.code == "rate_limit_exceeded"


def test_tokens_of_answers_count_towards_the_quota():
    with api_server(scripted(Protection.for_public(tokens_per_hour=20))) as url:
        found = [httpx.post(f"{url}/v1/chat/completions", json=BODY, headers=SESSION).status_code for _ in range(4)]
    # 13 tokens each: the second one takes more than is left, which is known afterwards.
    assert found == [200, 200, 429, 429]


def test_in_public_a_document_needs_a_session_of_ones_own():
    with api_server(scripted(Protection.for_public())) as url:
        answer = httpx.post(f"{url}/v1/documents", files={"file": ("a.txt", b"text")}, headers={"Authorization": "Bearer none"})
    assert answer.status_code == 401 and "X-Fusescope-Session" in answer.json()["error"]["message"]


def test_without_the_password_nothing_but_health_answers():
    with api_server(scripted(Protection(password="open sesame"))) as url:
        paths = ("/v1/models", "/v1/documents", "/metrics")
        assert [httpx.get(url + path).status_code for path in paths] == [401] * 3
        assert httpx.post(f"{url}/v1/chat/completions", json=BODY, headers={"Authorization": "Bearer sesame"}).status_code == 401
        with openai.OpenAI(base_url=f"{url}/v1", api_key="open sesame", max_retries=0) as client:
            assert client.chat.completions.create(**BODY).choices[0].message.content == "In Vell"


def test_a_full_queue_turns_the_next_one_away_at_once():
    turns, release = Turns(max_waiting=2), threading.Event()
    told = []

    def hold():
        with turns.turn(told.append, lambda: False):
            release.wait(10)

    threads = [threading.Thread(target=hold) for _ in range(3)]
    for thread in threads:
        thread.start()
    while turns.num_waiting < 2 or len(told) < 2:
        time.sleep(0.01)
    with pytest.raises(QueueFull, match="2 requests wait already"), turns.turn(told.append, lambda: False):
        pass
    release.set()
    for thread in threads:
        thread.join(10)
    with turns.turn(told.append, lambda: False):
        assert turns.num_waiting == 0


def test_time_begins_with_the_turn_and_ends_in_a_sentence():
    assert within(0.0, lambda: True)() is True
    late = within(0.01, lambda: False)
    time.sleep(0.02)
    with pytest.raises(TimedOut, match=r"more than 0\.01 s"):
        late()


def test_a_chat_that_takes_too_long_is_stopped_and_the_next_one_works(tmp_path):
    with tiny_session(tmp_path, timeout_s=1e-6) as session:
        request = ChatRequest((ChatMessage("user", "Who?"),), max_new_tokens=64)
        with pytest.raises(TimedOut):
            list(session.chat(request))
        with api_server(session) as url:
            answer = httpx.post(f"{url}/v1/chat/completions", json=BODY | {"model": "fusescope"}, timeout=30)
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "timeout"


def test_a_replay_that_takes_too_long_is_stopped_and_says_what_to_do(tmp_path):
    with tiny_session(tmp_path, replay_s=1e-6) as session, pytest.raises(gr.Error, match="choose fewer policies or seeds"):
        list(make_replay(session)("tool_use", "saecache", "5 %"))


def test_in_public_only_listed_models_are_offered_and_taken(tmp_path):
    with tiny_session(tmp_path, public=True, models=("own/listed",)) as session:
        assert session.model_names() == ("tiny-llama", "own/listed")
        for name in ("/etc", "../models", "nobody/else", "bundled"):
            with pytest.raises(ModelUnavailable, match="choose among: tiny-llama, own/listed"):
                session.select_model(name)
        assert "Ready" in session.select_model("own/listed")
