"""What a turn may ask: messages take turns, and a bad value is one sentence."""

import pytest
from chat_worlds import ask, notes

from engine.chat.types import ChatMessage, ChatRequest
from engine.errors import BadRequest


@pytest.mark.parametrize(
    ("roles", "sentence"),
    [
        ("", "not a question"),
        ("ua", "not a question"),
        ("uu", "take turns"),
        ("au", "take turns"),
        ("usu", "take turns"),
        ("su", None),
        ("uau", None),
    ],
)
def test_messages_take_turns(roles, sentence):
    names = {"u": "user", "a": "assistant", "s": "system"}
    messages = tuple(ChatMessage(names[role], "Text.") for role in roles)
    if sentence is None:
        assert ChatRequest(messages).question == "Text."
        return
    with pytest.raises(BadRequest, match=sentence):
        ChatRequest(messages)


@pytest.mark.parametrize(
    "changed",
    [
        {"ratio": 1.5},
        {"ratio": float("nan")},
        {"temperature": -1.0},
        {"max_new_tokens": 0},
        {"max_new_tokens": 513},
        {"chunk_context": "beside"},
        {"question": "  "},
        {"question": "x" * 4001},
    ],
)
def test_bad_values_are_one_sentence(changed):
    with pytest.raises(BadRequest, match=r"^[A-Z][^\n]*\.$"):
        ask(**changed)
    chunk = notes()[0]
    with pytest.raises(BadRequest, match="twice"):
        ChatRequest((ChatMessage("user", "Who?"),), (chunk, chunk))


def test_an_answer_may_be_empty_a_question_not():
    question, empty = ChatMessage("user", "Who?"), ChatMessage("assistant", "")
    assert ChatRequest((question, empty, question)).question == "Who?"
    with pytest.raises(BadRequest, match="Message 3 has no text"):
        ChatRequest((question, empty, ChatMessage("user", " "), empty, question))
