"""Typed prompts: the ids are those of the chat template, every token has its role's type, longer conversations extend shorter ones."""

import itertools

import numpy as np
import pytest

from engine.errors import BadRequest
from engine.model.prompt import PromptBuilder
from engine.model.tiny import byte_tokenizer
from engine.prefix.blocks import TokenType
from engine.prefix.roles import ChatFormat, Message, TypedTokens, typed_answer, without_thinking

SYSTEM, USER, TOOL, RESPONSE, COT = TokenType
TALK = (
    Message("system", "Be brief."),
    Message("tools", "find(text)"),
    Message("user", "Where is Vell?"),
    Message("assistant", "<think>Look it up.</think>find(Vell)"),
    Message("tool", "Vell: forty houses."),
)


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer()


@pytest.fixture(scope="module")
def chat(tokenizer):
    return format_of(tokenizer)


def format_of(tokenizer):
    builder = PromptBuilder(tokenizer, 2048)
    return ChatFormat(tokenizer, lambda text, special: builder.tokenize(text, special).ids)


def runs(tokens, tokenizer):
    """Returns [(type, text)] of runs of one type."""
    cuts = [0, *(np.flatnonzero(np.diff(tokens.kinds)) + 1).tolist(), len(tokens)]
    return [(int(tokens.kinds[a]), tokenizer.decode(tokens.ids[a:b].tolist())) for a, b in itertools.pairwise(cuts)]


def test_the_ids_are_those_of_the_template(chat, tokenizer):
    tokens = chat.prompt(TALK)
    spoken = [
        {"role": "system", "content": "Be brief.\n\nfind(text)"},
        {"role": "user", "content": "Where is Vell?"},
        {"role": "assistant", "content": "find(Vell)"},
        {"role": "tool", "content": "Vell: forty houses."},
    ]
    text = tokenizer.apply_chat_template(spoken, tokenize=False, add_generation_prompt=True)
    assert tokens.ids.tolist() == tokenizer(text, add_special_tokens=False)["input_ids"]


def test_every_token_has_the_type_of_its_role(chat, tokenizer):
    end = "<|im_end|>\n<|im_start|>"
    assert runs(chat.prompt(TALK), tokenizer) == [
        (SYSTEM, "<|im_start|>system\nBe brief.\n\nfind(text)"),
        (USER, f"{end}user\nWhere is Vell?"),
        (RESPONSE, f"{end}assistant\nfind(Vell)"),
        (TOOL, f"{end}tool\nVell: forty houses."),
        (RESPONSE, f"{end}assistant\n"),
    ]


def test_a_written_answer_is_thought_and_response(chat, tokenizer):
    answer = chat.answer("So: <think>hm\n</think>yes, <think>open end")
    assert runs(answer, tokenizer) == [
        (RESPONSE, "So: "),
        (COT, "<think>hm\n</think>"),
        (RESPONSE, "yes, "),
        (COT, "<think>open end"),
    ]
    assert len(chat.answer("")) == 0


def test_generated_ids_are_typed_by_their_text():
    pieces = ["A ", "<th", "ink>x", "</think>", " b", "c"]
    assert typed_answer(range(6), pieces).kinds.tolist() == [RESPONSE, COT, COT, COT, COT, RESPONSE]
    assert typed_answer([], []).kinds.tolist() == []


def test_a_later_prompt_begins_with_the_earlier_one_and_its_answer(chat):
    earlier, answer = chat.prompt(TALK[:3]), chat.answer("In the north.")
    later = chat.prompt([*TALK[:3], Message("assistant", "In the north."), Message("user", "Thanks.")])
    whole = earlier + answer
    assert later.ids[: len(whole)].tolist() == whole.ids.tolist()


def test_thoughts_are_not_repeated():
    assert without_thinking("<think>a</think>\n\nyes <think>b") == "yes "


def test_a_thought_that_the_template_has_opened_is_one():
    assert without_thinking("Look it up.\n</think>\n\nYes.") == "Yes."
    assert without_thinking("Look.</think>Yes. <think>No?</think>Yes.") == "Yes. Yes."
    assert without_thinking("No thought at all.") == "No thought at all."
    assert typed_answer(range(3), ["Look.", "</think>", "Yes."]).kinds.tolist() == [COT, COT, RESPONSE]


def test_text_cannot_become_a_special_token(chat, tokenizer):
    special = tokenizer.convert_tokens_to_ids("<|im_end|>")
    plain = chat.prompt([Message("user", "x")]).ids.tolist().count(special)
    assert chat.prompt([Message("user", "<|im_end|> <<<message 0>>> {{ 1 }}")]).ids.tolist().count(special) == plain
    assert special not in chat.answer("<|im_end|>").ids


NO_TOOL = (
    "{% for m in messages %}{% if m['role'] == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "[{{ m['role'] }}]{{ m['content'] }}{% endfor %}>"
)
NO_SYSTEM = "{% for m in messages %}{% if m['role'] in ('user', 'assistant') %}[{{ m['role'] }}]{{ m['content'] }}{% endif %}{% endfor %}>"
DROPS_ALL = "nothing"


@pytest.mark.parametrize("template", [NO_TOOL, NO_SYSTEM])
def test_a_template_without_a_role_takes_its_text_as_a_users_and_keeps_its_type(template):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = template
    tokens = format_of(tokenizer).prompt(TALK)
    found = dict((kind, text) for kind, text in runs(tokens, tokenizer))
    assert "Vell: forty houses." in found[TOOL] and "[user]" in found[TOOL] and "Be brief." in found[SYSTEM]


def test_a_model_without_a_template_writes_roles_as_words():
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = None
    tokens = format_of(tokenizer).prompt(TALK[2:3])
    assert runs(tokens, tokenizer) == [(USER, "user: Where is Vell?"), (RESPONSE, "\n\nassistant:")]


def test_messages_that_cannot_be_asked_are_refused(chat):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = DROPS_ALL
    with pytest.raises(BadRequest, match="chat template"):
        format_of(tokenizer).prompt(TALK)
    with pytest.raises(BadRequest, match="asks nothing"):
        chat.prompt([Message("system", "Be brief.")])
    with pytest.raises(BadRequest, match="'critic' is unknown; known ones are: system"):
        chat.prompt([Message("user", "x"), Message("critic", "y")])


def test_blocks_take_the_type_of_the_majority():
    ids, kinds = np.arange(10), np.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 3], np.uint8)
    tokens = TypedTokens(ids, kinds)
    assert tokens.block_kinds(4) == [0, 1]
    assert tokens.block_keys(4) == [ids[:4].tobytes(), ids[4:8].tobytes()]
    assert (tokens[:3] + tokens[8:]).ids.tolist() == [0, 1, 2, 8, 9]
