"""From OpenAI's messages to a conversation, and the one tool."""

import json

import pytest
from pydantic import ValidationError

from engine.errors import BadRequest
from engine.serving import tools
from engine.serving.conversation import conversation_of
from engine.serving.problems import problem_of_body
from engine.serving.schema import ChatBody, Message

ASK = {"role": "user", "content": "Who?"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
SEARCH = {"type": "function", "function": {"name": "search_documents"}}


def body(**fields):
    return ChatBody(**({"model": "fusescope", "messages": [ASK]} | fields))


def talk(*messages):
    return conversation_of([Message(**message) for message in messages])


def found(*texts):
    return json.dumps({"data": [{"id": f"d{i}", "title": f"T{i}", "text": text, "score": 0.5} for i, text in enumerate(texts)]})


def test_texts_parts_and_system_messages_become_turns():
    parts = [{"type": "text", "text": "Wh"}, {"type": "text", "text": "o?"}]
    got = talk(
        {"role": "system", "content": "Be brief."}, {"role": "developer", "content": "In verse."}, ASK,
        {"role": "assistant", "content": "Ada."}, {"role": "user", "content": parts},
    )  # fmt: skip
    assert [(m.role, m.text) for m in got.messages] == [
        ("system", "Be brief.\nIn verse."), ("user", "Who?"), ("assistant", "Ada."), ("user", "Who?"),
    ]  # fmt: skip
    assert got.question == "Who?" and got.chunks == ()


def test_what_our_search_found_becomes_chunks_and_other_results_one_text():
    got = talk(ASK, CALL, {"role": "tool", "tool_call_id": "c1", "content": found("One.", "Two.")})
    assert [(c.chunk_id, c.title, c.text, c.relevance) for c in got.chunks] == [("d0", "T0", "One.", 0.5), ("d1", "T1", "Two.", 0.5)]
    assert [m.role for m in got.messages] == ["user"]
    plain = talk(ASK, CALL, {"role": "tool", "tool_call_id": "c1", "content": "It is cold."})
    assert [c.text for c in plain.chunks] == ["It is cold."]


@pytest.mark.parametrize("content", ['{"data": [{"text": ""}]}', '{"data": 3}', "[" * 5000, '{"data": [{"text": 1}]}', "null"])
def test_a_result_that_only_looks_like_ours_stays_a_text(content):
    assert [c.text for c in talk(ASK, CALL, {"role": "tool", "content": content}).chunks] == [content]


def test_results_belong_to_the_question_before_them_and_a_chunk_found_twice_counts_once():
    tool = {"role": "tool", "content": found("One.")}
    later = talk(ASK, CALL, tool, {"role": "assistant", "content": "Ada."}, {"role": "user", "content": "And when?"})
    assert later.chunks == () and len(later.messages) == 3
    assert len(talk(ASK, CALL, tool, tool).chunks) == 1


@pytest.mark.parametrize("messages", [[{"role": "assistant", "content": "Ada."}], [ASK, {"role": "assistant", "content": "A"}]])
def test_a_conversation_must_end_with_a_question(messages):
    with pytest.raises(BadRequest, match="not a question"):
        talk(*messages)


def test_what_is_said_before_a_call_is_no_answer():
    said, tool = CALL | {"content": "Let me look."}, {"role": "tool", "tool_call_id": "c1", "content": found("One.")}
    asked = talk(ASK, said, tool)
    assert [m.role for m in asked.messages] == ["user"] and [c.text for c in asked.chunks] == ["One."]
    later = talk(ASK, said, tool, {"role": "assistant", "content": "Ada."}, {"role": "user", "content": "When?"})
    assert [m.text for m in later.messages] == ["Who?", "Ada.", "When?"]


def test_messages_of_one_speaker_in_a_row_are_one():
    more = {"role": "user", "content": "And when?"}
    assert [m.text for m in talk(ASK, more).messages] == ["Who?\n\nAnd when?"]
    answers = [{"role": "assistant", "content": text} for text in ("Ada.", None, "Quill.")]
    assert [m.text for m in talk(ASK, *answers, more).messages] == ["Who?", "Ada.\n\nQuill.", "And when?"]


def test_a_conversation_keeps_its_name_from_turn_to_turn():
    more = talk(ASK, {"role": "assistant", "content": "Ada."}, {"role": "user", "content": "When?"})
    assert talk(ASK).name("anna") == more.name("anna") != more.name("bert")


def test_a_call_is_made_only_where_it_is_forced():
    assert not tools.wants_call(body(tools=[SEARCH])) and tools.notices(body(tools=[SEARCH]))
    assert not tools.wants_call(body(tools=[SEARCH], tool_choice="none")) and not tools.notices(body(tools=[SEARCH], tool_choice="none"))
    for choice in ("required", {"type": "function", "function": {"name": "search_documents"}}):
        assert tools.wants_call(body(tools=[SEARCH], tool_choice=choice))
        answered = body(tools=[SEARCH], tool_choice=choice, messages=[ASK, CALL, {"role": "tool", "content": "x"}])
        assert not tools.wants_call(answered)
    call = tools.search_call('Who "is" he?')
    assert json.loads(call["function"]["arguments"]) == {"query": 'Who "is" he?'}


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": "required"},
        {"tools": [{"type": "function", "function": {"name": "weather"}}], "tool_choice": "required"},
        {"tools": [SEARCH], "tool_choice": {"type": "function", "function": {"name": "weather"}}},
    ],
)
def test_no_other_call_can_be_forced(fields):
    with pytest.raises(BadRequest, match="search_documents"):
        tools.wants_call(body(**fields))


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"n": 2}, "n", "is 2"),
        ({"temperature": 3}, "temperature", "less than or equal to 2"),
        ({"temperature": "hot"}, "temperature", "valid number"),
        ({"temperature": True}, "temperature", "valid number"),
        ({"max_tokens": True}, "max_tokens", "valid integer"),
        ({"max_tokens": "16"}, "max_tokens", "valid integer"),
        ({"stream": "yes"}, "stream", "valid boolean"),
        ({"fusion": {"ratio": "0.3"}}, "fusion.ratio", "valid number"),
        ({"fusion": {"retrieve": True}}, "fusion.retrieve", "valid integer"),
        ({"max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
        ({"top_p": 0.5}, "top_p", "0.5"),
        ({"logprobs": True}, "logprobs", "true"),
        ({"response_format": {"type": "json_object"}}, "response_format.type", "'text'"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role", "robot"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages[0].content[0]", ""),
        ({"fusion": {"ratio": 1.5}}, "fusion.ratio", "1.5"),
        ({"fusion": {"metod": "x"}}, "fusion.metod", "not known"),
        ({"best_of": 3}, "best_of", "not known"),
        ({"documents": [{"text": ""}]}, "documents[0].text", "at least 1"),
        ({"stop": 5}, "stop", "5"),
        ({"stop": ["x"] * 17}, "stop", "at most 16"),
        ({"stop": ["x" * 201]}, "stop[0]", "at most 200"),
        ({"messages": [{"role": "user", "content": "cut \ud83d"}]}, "messages[0].content", "half a character"),
        ({"documents": [{"text": "cut \ud83d"}]}, "documents[0].text", "half a character"),
        ({"\ud83d": 1}, "body", "half a character"),
        ({"seed": -1}, "seed", "-1"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_field_that_does_not_hold_is_named_in_one_sentence(fields, param, words):
    with pytest.raises(ValidationError) as caught:
        body(**fields)
    problem = problem_of_body(caught.value.errors())
    assert problem.status == 400 and (problem.param or "").startswith(param) and words in problem.message, problem
    assert problem.message.endswith(".") and "\n" not in problem.message and "http" not in problem.message


def test_a_missing_field_is_named():
    with pytest.raises(ValidationError) as caught:
        ChatBody(messages=[ASK])
    assert problem_of_body(caught.value.errors()).message == "The field `model` is missing; add it."
