"""Methods that requests name: what of the built-in engine's is accepted, and what is refused before the scheduler runs it."""

import pytest

from engine.errors import BadRequest, UnknownName
from engine.fusion.compose import method_names
from engine.serving.sglang.jobs import make_method, make_prompt
from engine.serving.sglang.metadata import FusionMeta

SPANS, QUESTION = ((4, 9), (9, 20)), (22, 30)


@pytest.mark.parametrize("name", method_names())
def test_every_method_of_the_built_in_engine_has_a_name_here(name):
    assert make_method(FusionMeta(SPANS, QUESTION, name)).name == name


@pytest.mark.parametrize(
    "params, reason",
    [
        ({"ratio": "a lot"}, "not valid"),
        ({"ratio": 1.5}, "from 0 to 1"),
        ({"anchor_ratio": -0.1}, "from 0 to 1"),
        ({"anchor_rule": "best"}, "not valid"),
        ({"critical_layer": 1.5}, "not valid"),
        ({"depth": 1}, "no parameter 'depth'"),
    ],
    ids=str,
)
def test_parameters_that_break_a_rule_are_refused(params, reason):
    with pytest.raises(BadRequest, match=reason):
        make_method(FusionMeta(SPANS, QUESTION, params=params))


def test_unknown_methods_are_refused():
    with pytest.raises(UnknownName, match="magic"):
        make_method(FusionMeta(SPANS, QUESTION, "magic"))


MISPLACED = [((), QUESTION), (((4, 9), (10, 20)), QUESTION), (((4, 4),), QUESTION), (SPANS, (19, 30)), (SPANS, (22, 41))]


@pytest.mark.parametrize("spans, question", MISPLACED, ids=str)
def test_spans_that_do_not_fit_the_prompt_are_refused(spans, question):
    with pytest.raises(BadRequest):
        make_prompt(FusionMeta(spans, question), list(range(40)))


def test_a_prompt_is_what_its_spans_say():
    prompt = make_prompt(FusionMeta(SPANS, QUESTION), list(range(40)))
    assert (prompt.system_len, prompt.question_start, prompt.num_tokens, prompt.num_doc_tokens) == (4, 20, 40, 16)


@pytest.mark.parametrize(
    "method, params, reason",
    [
        ("cacheblend", {"gradual_layers": "many"}, "not valid"),
        ("cacheblend", {"gradual_excess": "much"}, "not valid"),
        ("qcfuse_cv", {"num_layers": 0}, "at least one"),
        ("infoflow", {"num_layers": 0}, "at least one"),
        ("random", {"seed": 10**20}, "whole number"),
    ],
    ids=str,
)
def test_parameters_that_would_end_the_scheduler_are_refused(method, params, reason):
    with pytest.raises(BadRequest, match=reason):
        make_method(FusionMeta(SPANS, QUESTION, method, params))
