"""Bad input becomes one sentence; good input becomes the request that was meant."""

import math
from dataclasses import replace

import pytest
from fake_runs import harbour_scenario

from engine.errors import BadRequest
from engine.types import CHUNK_CONTEXTS
from viz.panels.fuse_controls import CONTEXTS
from viz.panels.request_form import FusionForm, chunk_items, parse_form, parse_model_name

SCENARIO, KNOWN = harbour_scenario(), ("full", "qcfuse", "reuse")
GOOD = FusionForm("Who designed the tidal gate of Orsund?", None, 0.3, ["qcfuse", "full"], "system", 32, 0.0, 7, 3)


def test_prepared_question_brings_gold_answers_and_methods_in_reading_order():
    job = parse_form(GOOD, SCENARIO, KNOWN)
    assert job.request.gold_answers == ("Ilka Brandt",) and job.request.supporting and job.request.seed == 7
    assert job.methods == ("full", "qcfuse") and len(job.request.chunks) == 12


def test_methods_come_from_the_method_list_and_are_the_usual_ones_before_it_was_touched():
    assert parse_form(replace(GOOD, methods={"b64": "x"}), SCENARIO, KNOWN).methods == ("full", "reuse", "qcfuse")
    assert parse_form(replace(GOOD, methods={"b64": "x", "chosen": ["qcfuse", "qcfuse"]}), SCENARIO, KNOWN).methods == ("qcfuse",)
    assert parse_form(replace(GOOD, methods=["qcfuse+alone"]), SCENARIO, KNOWN).methods == ("qcfuse+alone",)


def test_every_chunk_context_is_offered_with_a_sentence():
    assert set(CONTEXTS) == set(CHUNK_CONTEXTS) and all(text.endswith(".") and ": " in text for text in CONTEXTS.values())


def test_free_question_and_reordered_chunks():
    job = parse_form(replace(GOOD, question="Why?", chunks={"kept": ["p3", "p1"]}), SCENARIO, KNOWN)
    assert [c.chunk_id for c in job.request.chunks] == ["p3", "p1"] and job.request.gold_answers == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"question": "  "}, "question is empty"),
        ({"question": None}, "question is empty"),
        ({"question": ["a"]}, "question is empty"),
        ({"question": "x" * 5_000}, "at most 4,000"),
        ({"chunks": {"kept": []}}, "No chunk is selected"),
        ({"chunks": {"kept": ["p1", "p1"]}}, "listed twice"),
        ({"chunks": {"kept": ["zz"]}}, "does not fit the scenario"),
        ({"chunks": {"kept": "p1"}}, "does not fit the scenario"),
        ({"chunks": {"kept": [{"a": 1}]}}, "does not fit the scenario"),
        ({"ratio": math.nan}, "from 0 to 1"),
        ({"ratio": None}, "recompute ratio is empty"),
        ({"ratio": "0.3"}, "recompute ratio is empty"),
        ({"ratio": 1.5}, "from 0 to 1"),
        ({"methods": []}, "No method is selected"),
        ({"methods": None}, "No method is selected"),
        ({"methods": ["unknown"]}, "Unknown method 'unknown'"),
        ({"methods": ["full", ""]}, "Unknown method ''"),
        ({"methods": ["unknown+primed"]}, "Unknown method"),
        ({"methods": {"chosen": []}}, "No method is selected"),
        ({"methods": {"chosen": 3}}, "No method is selected"),
        ({"methods": {"chosen": [["full"], {}]}}, "Unknown method"),
        ({"chunk_context": "moon"}, "Unknown chunk context"),
        ({"max_new_tokens": 0}, "from 1 to 512"),
        ({"max_new_tokens": 3.5}, "whole number"),
        ({"max_new_tokens": math.inf}, "whole number"),
        ({"temperature": -1}, "from 0"),
        ({"temperature": True}, "temperature is empty"),
        ({"seed": None}, "seed is empty"),
        ({"repeats": 100}, "from 1 to 20"),
    ],
)
def test_bad_values_give_a_sentence(changes, words):
    with pytest.raises(BadRequest, match=words) as caught:
        parse_form(replace(GOOD, **changes), SCENARIO, KNOWN)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("value", [None, "", "  ", 3])
def test_model_name_must_be_given(value):
    with pytest.raises(BadRequest, match="model name is empty"):
        parse_model_name(value)


def test_chunk_items_cut_long_text():
    passages = (replace(SCENARIO.passages[0], text="x" * 200_000),)
    (item,) = chunk_items(replace(SCENARIO, passages=passages))["items"]
    assert len(item["preview"]) < 100
