"""Chat templates as they are found: with a clock, of another shape than expected, or none at all."""

import pytest

from engine.errors import BadRequest
from engine.model.prompt import PromptBuilder
from engine.model.template import opening, rendered, turn_ends
from engine.model.tiny import byte_tokenizer

ASKED = [{"role": "user", "content": "Why?"}]
PLAIN = "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
LLAMA_3 = (
    "{%- if not date_string is defined %}{%- if strftime_now is defined %}{%- set date_string = strftime_now('%d %b %Y') %}"
    "{%- else %}{%- set date_string = '26 Jul 2024' %}{%- endif %}{%- endif %}Today: {{ date_string }}\n" + PLAIN
)
IN_A_MACRO = "{% macro head() %}{{ strftime_now('%A, %B %d, %Y') }} ({{ strftime_now('%Y-%m-%d') }}){% endmacro %}{{ head() }}" + PLAIN


def tokenizer_of(template):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = template
    return tokenizer


def with_an_opening(tokenizer):
    """Returns a tokenizer that begins every text with its first token, as most of Llama's do."""
    from tokenizers.processors import TemplateProcessing

    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 256)])
    return tokenizer


@pytest.mark.parametrize(
    ("template", "begin"),
    [(LLAMA_3, "Today: 26 Jul 2024\n"), (IN_A_MACRO, "Friday, July 26, 2024 (2024-07-26)")],
    ids=["a variable", "a macro"],
)
def test_the_date_in_a_prompt_stands_still(template, begin):
    """Else what is stored behind the system part would be lost every midnight."""
    assert rendered(tokenizer_of(template), ASKED) == f"{begin}[user]Why?"


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{% if m['role'] == 'system' %}{{ 1 + 'a' }}{% endif %}[{{ m['content'] }}]{% endfor %}",
        "{% for m in messages %}{% if m['role'] == 'system' %}{{ m['tools'][0] }}{% endif %}[{{ m['content'] }}]{% endfor %}",
        "{% for m in messages %}{% if m['role'] == 'system' %}{{ m['content'].index('{') }}{% endif %}[{{ m['content'] }}]{% endfor %}",
        {"default": "{% for m in messages %}[{{ m['content'] }}]{% endfor %}", "tool_use": "nothing"},
    ],
    ids=["TypeError", "UndefinedError", "ValueError", "several"],
)
def test_a_template_that_fails_on_the_system_part_gets_it_before_the_question(template):
    assert "".join(PromptBuilder(tokenizer_of(template), 2048).system.pieces).startswith("[You answer questions")


@pytest.mark.parametrize("template", [{"tool_use": PLAIN}, "{% for m in messages", "{{ messages[0]['content'].index('zz') }}"])
def test_a_template_that_holds_no_conversation_is_one_sentence(template):
    with pytest.raises(BadRequest, match="choose a model with an ordinary chat template"):
        PromptBuilder(tokenizer_of(template), 2048)


def test_a_prompt_without_a_template_begins_as_the_tokenizer_begins_texts():
    assert opening(byte_tokenizer()) == ""
    tokenizer = with_an_opening(tokenizer_of(None))
    ids = PromptBuilder(tokenizer, 2048).system.ids.tolist()
    assert opening(tokenizer) == "<|endoftext|>" and ids[0] == 256 and ids.count(256) == 1


def test_a_template_opens_a_prompt_itself_and_once():
    tokenizer = with_an_opening(tokenizer_of("{{ bos_token }}" + PLAIN))
    assert PromptBuilder(tokenizer, 2048).system.ids.tolist().count(256) == 1


@pytest.mark.parametrize(
    ("template", "ends"),
    [
        ("{% for m in messages %}{{ m['content'] }}<|im_end|>\n{% endfor %}", (258,)),
        ("{% for m in messages %}{{ m['content'] }} <|endoftext|>{% endfor %}", (256,)),
        ("{% for m in messages %}{{ m['content'] }}\n\n{% endfor %}", ()),
        ("{% for m in messages %}{{ m['content'] }} END{% endfor %}", ()),
        ("{{ raise_exception('no') }}", ()),
        (None, ()),
    ],
)
def test_the_token_behind_an_answer_ends_a_turn(template, ends):
    assert turn_ends(tokenizer_of(template)) == ends
