"""The real `openai` client against a real session on a tiny model."""

import json

import httpx
import openai
import pytest
from serving_world import PASSAGES, QUESTION, SESSION

TOOL = {"type": "function", "function": {"name": "search_documents", "parameters": {"type": "object"}}}
FORCE = {"type": "function", "function": {"name": "search_documents"}}


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", default_headers=SESSION, max_retries=0) as client:
        yield client


@pytest.fixture
def ask(client):
    """Returns a function that asks the usual question."""

    def ask(method="qcfuse", ratio=0.3, messages=QUESTION, documents=PASSAGES, retrieve=None, **more):
        extra = {"documents": documents, "fusion": {"method": method, "ratio": ratio, "retrieve": retrieve}}
        return client.chat.completions.create(model="fusescope", messages=messages, max_tokens=12, extra_body=extra, **more)

    return ask


@pytest.fixture(scope="module")
def document(client):
    """A document of the client's own."""
    text = "\n\n".join(passage["text"] for passage in PASSAGES).encode()
    options = {"headers": {"Content-Type": "multipart/form-data"}}
    return client.post("/documents", cast_to=object, files={"file": ("notes.txt", text, "text/plain")}, options=options)


def test_a_chat_says_what_was_cached_and_what_was_recomputed(ask):
    ask()
    answer = ask()
    details, extras = answer.usage.prompt_tokens_details, answer.fusescope
    computed = extras["num_prefix_computed"] + extras["num_recomputed"] + extras["num_question"]
    assert answer.usage.prompt_tokens == details.cached_tokens + computed
    assert details.cached_tokens > 0 and details.recomputed_tokens == extras["num_recomputed"] > 0
    assert [document["title"] for document in extras["documents"]] == ["Lamp", "Village", "Ferry"]
    spans = extras["sources"]
    assert spans[0]["start"] == 0 and spans[-1]["stop"] == answer.usage.prompt_tokens
    assert answer.model == "tiny-llama" and answer.usage.completion_tokens <= 12


def test_a_stream_joins_to_the_whole_answer(ask):
    whole = ask()
    parts = list(ask(stream=True, stream_options={"include_usage": True}))
    text = "".join(choice.delta.content or "" for part in parts for choice in part.choices)
    assert text == whole.choices[0].message.content
    assert parts[-1].usage.total_tokens == whole.usage.total_tokens and not parts[-1].choices
    assert parts[-2].choices[0].finish_reason == whole.choices[0].finish_reason


@pytest.mark.parametrize("documents", [PASSAGES, PASSAGES[:1], []], ids=["three", "one", "none"])
def test_at_ratio_one_the_answer_is_that_of_full(ask, documents):
    full, fused = ask("full", documents=documents), ask("qcfuse", 1.0, documents=documents)
    assert fused.choices[0].message.content == full.choices[0].message.content


def test_seeds_and_temperatures_are_taken(ask):
    first, again, other = (ask(temperature=1.5, seed=seed).choices[0].message.content for seed in (7, 7, 8))
    assert first == again != other


def test_a_second_turn_hits_the_prefix_cache(ask):
    first = ask(documents=[]).choices[0].message
    messages = [*QUESTION, {"role": "assistant", "content": first.content or "x"}, {"role": "user", "content": "And when?"}]
    ask(messages=messages)
    assert ask(messages=messages).fusescope["num_prefix_hits"] > 0


def test_an_uploaded_file_is_answered_over_whole_or_searched(ask, client, document):
    assert document["filename"] == "notes.txt" and document["num_chunks"] >= 1
    assert [entry["id"] for entry in client.get("/documents", cast_to=object)["data"] if not entry["is_shared"]] == [document["id"]]
    whole = ask(documents=[document["id"]])
    chunks = client.get(f"/documents/{document['id']}", cast_to=object)["chunks"]
    assert [d["id"] for d in whole.fusescope["documents"]] == [chunk["id"] for chunk in chunks]
    found = ask(documents=[], retrieve=1)
    assert len(found.fusescope["documents"]) == 1 and found.fusescope["documents"][0]["relevance"] > 0
    nothing = ask(documents=[], retrieve=1, messages=[{"role": "user", "content": "zzzqqq"}])
    assert nothing.fusescope["documents"] == [] and "found no chunk" in nothing.fusescope["notices"][0]


def test_the_search_as_a_tool_goes_round(ask, client, document):
    called = ask(documents=[], tools=[TOOL], tool_choice=FORCE).choices[0]
    assert called.finish_reason == "tool_calls" and called.message.content is None
    call = called.message.tool_calls[0]
    results = client.post("/documents/search", cast_to=object, body={**json.loads(call.function.arguments), "num": 2})
    assert results["data"] and all(result["text"] for result in results["data"])
    messages = [*QUESTION, called.message, {"role": "tool", "tool_call_id": call.id, "content": json.dumps(results)}]
    answer = ask(documents=[], messages=messages, tools=[TOOL])
    assert [d["id"] for d in answer.fusescope["documents"]] == [result["id"] for result in results["data"]]
    assert answer.choices[0].finish_reason in ("stop", "length")


def test_tools_that_are_not_forced_are_not_called_and_that_is_said(ask):
    answer = ask(tools=[TOOL], tool_choice="auto")
    assert answer.choices[0].message.tool_calls is None
    assert any("does not choose tools by itself" in notice for notice in answer.fusescope["notices"])


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        (openai.BadRequestError, {"n": 2}, "`n` is 2"),
        (openai.BadRequestError, {"top_p": 0.5}, "`top_p`"),
        (openai.BadRequestError, {"messages": [{"role": "user", "content": " "}]}, "no text"),
        (openai.NotFoundError, {"documents": ["no-such-document"]}, "no-such-document"),
        (openai.NotFoundError, {"method": "nonsense"}, "known ones are"),
    ],
    ids=["n", "top_p", "empty", "document", "method"],
)
def test_mistakes_are_the_clients_own_errors_with_one_sentence(ask, kind, fields, words):
    with pytest.raises(kind, match=words) as caught:
        ask(**fields)
    assert "Traceback" not in caught.value.message and ask().choices[0].message.content is not None


def test_a_model_that_is_not_here_is_not_found(client):
    with pytest.raises(openai.NotFoundError, match="'tiny-llama'"):
        client.chat.completions.create(model="gpt-4", messages=QUESTION)
    assert [model.id for model in client.models.list()] == ["tiny-llama"] and client.models.retrieve("fusescope").id == "tiny-llama"


def test_an_upload_without_a_file_is_one_sentence(url):
    for form, words in (({"file": "text"}, "is no file"), ({"other": "text"}, "`file` is missing")):
        response = httpx.post(f"{url}/v1/documents", data=form, headers=SESSION)
        assert response.status_code == 400 and words in response.json()["error"]["message"]
    two = [("file", (name, b"Text of its own: " + name.encode())) for name in ("a.txt", "b.txt")]
    response = httpx.post(f"{url}/v1/documents", files=two, headers=SESSION)
    assert response.status_code == 400 and "2 files" in response.json()["error"]["message"]


def test_a_stop_text_ends_the_engines_work(ask):
    whole = ask()
    text = whole.choices[0].message.content
    stopped = ask(stop=text[3:5])
    assert stopped.choices[0].message.content == text[: text.index(text[3:5])] and stopped.choices[0].finish_reason == "stop"
    assert stopped.usage.completion_tokens < whole.usage.completion_tokens


def test_another_sessions_documents_are_as_unknown_as_none(url, document):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="another", max_retries=0) as other:
        assert not [entry for entry in other.get("/documents", cast_to=object)["data"] if not entry["is_shared"]]
        for call in (
            lambda: other.get(f"/documents/{document['id']}", cast_to=object),
            lambda: other.delete(f"/documents/{document['id']}", cast_to=object),
        ):
            with pytest.raises(openai.NotFoundError) as caught:
                call()
            assert "notes" not in caught.value.message


def test_deleted_documents_are_gone(client, document):
    assert client.delete(f"/documents/{document['id']}", cast_to=object)["deleted"] is True
    with pytest.raises(openai.NotFoundError):
        client.get(f"/documents/{document['id']}", cast_to=object)
    assert client.delete("/documents", cast_to=object)["num_deleted"] == 0
