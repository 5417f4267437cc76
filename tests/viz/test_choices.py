"""Who chose which token, how much two methods agree, and what another question changes."""

from dataclasses import replace

import numpy as np
import pytest
from fake_runs import ALL_METHODS, example_request, fake_run, harbour_scenario, large_run

from viz.figures.agreement import agreement_figure, agreement_info
from viz.figures.overlap import overlap_figure, overlap_info
from viz.figures.question_flip import question_flip_figure, question_flip_info, same_documents
from viz.figures.token_text import token_text_data, token_text_info

RUN = fake_run(example_request(repeats=1), ALL_METHODS)
CHUNKS = example_request().chunks[:3]
NOTHING_TO_CHOOSE = {name for name in ALL_METHODS if name.split("+")[0] in ("full", "reuse", "ape")}
SMALL = fake_run(example_request(chunks=CHUNKS, repeats=1), ALL_METHODS)
OTHER = fake_run(harbour_scenario().request("q2", chunks=CHUNKS, repeats=1), ALL_METHODS)


def picked(run, name):
    """Returns the document tokens that a method of a run recomputes."""
    return {int(row) for row in run.method(name).rows if run.system_len <= row < run.question_start}


def test_strips_hold_each_method_that_chooses_and_name_the_others():
    info = agreement_info(SMALL)
    assert info.bins.step == 1 and set(info.left_out) == NOTHING_TO_CHOOSE
    assert set(info.methods) | set(info.left_out) == set(ALL_METHODS)
    for row, name in enumerate(info.methods):
        assert set((np.flatnonzero(info.chosen[row]) + SMALL.system_len).tolist()) == picked(SMALL, name)
    figure = agreement_figure(info)
    assert "APE" in figure.layout.title.text
    assert sum(a.text.startswith("<b>") for a in figure.layout.annotations) == len(info.methods)


def test_hover_lists_the_methods_of_a_token_and_the_count_is_their_number():
    info = agreement_info(SMALL)
    starts = info.bins.edges[:-1].tolist()
    column = int(info.counts.argmax())
    names = [name for name in info.methods if starts[column] in picked(SMALL, name)]
    assert info.counts[column] == len(names) and info.hover[column].count("•") == len(names)
    assert f"chosen by {len(names)} of {len(info.methods)}" in info.hover[column]
    assert "chosen by no method" in info.hover[int(info.counts.argmin())]


def test_binned_strips_keep_the_number_of_tokens():
    info = agreement_info(large_run())
    total = (info.cells / 100 * info.bins.counts).sum()
    assert info.bins.step > 1 and total == pytest.approx(info.chosen.sum(), rel=0.01)
    assert len(agreement_figure(info).to_json()) < 1_000_000


def test_overlap_is_the_jaccard_index_of_the_sets():
    info = overlap_info(agreement_info(RUN))
    i, j = info.methods.index("qcfuse"), info.methods.index("epic")
    a, b = picked(RUN, "qcfuse"), picked(RUN, "epic")
    assert info.common[i, j] == len(a & b) and info.jaccard[i, j] == pytest.approx(len(a & b) / len(a | b))
    assert np.allclose(np.diag(info.jaccard), 1) and np.allclose(info.jaccard, info.jaccard.T)
    assert info.by_chance == pytest.approx(0.3 / 1.7, abs=0.01)
    assert overlap_figure(info).data[0].z.shape == info.jaccard.shape


def test_without_two_methods_that_choose_the_figures_say_so():
    for names in (("full", "reuse"), ("qcfuse",)):
        info = agreement_info(fake_run(example_request(repeats=1), names))
        assert overlap_figure(overlap_info(info)).layout.annotations[0].text
    assert not agreement_figure(agreement_info(replace(RUN, methods=()))).data
    assert not agreement_figure(agreement_info(fake_run(example_request(ratio=0.0, repeats=1)))).data


def test_the_text_knows_who_recomputes_each_token():
    data = token_text_data(token_text_info(RUN, "qcfuse"))
    choices = dict(data["choices"])
    assert len(choices) == len(ALL_METHODS) - len(NOTHING_TO_CHOOSE) and all(len(mask) == RUN.num_doc_tokens for mask in choices.values())
    assert {i + RUN.system_len for i, mark in enumerate(choices["EPIC"]) if mark == "1"} == picked(RUN, "epic")


def test_two_questions_split_the_tokens_into_three_groups():
    info = question_flip_info(SMALL, OTHER, "qcfuse")
    a, b = picked(SMALL, "qcfuse"), picked(OTHER, "qcfuse")
    assert info.num_by_group == (len(a - b), len(a & b), len(b - a)) and info.jaccard == pytest.approx(len(a & b) / len(a | b))
    assert min(info.num_by_group) > 0
    figure = question_flip_figure(info)
    assert [a.text for a in figure.layout.annotations][1] == f"<b>for both</b>  {len(a & b):,} tokens"


def test_a_method_that_does_not_look_at_the_question_keeps_its_set():
    for name in ("epic", "cacheblend", "random"):
        only_a, both, only_b = question_flip_info(SMALL, OTHER, name).num_by_group
        assert only_a == only_b == 0 and both > 0
    empty = question_flip_info(SMALL, OTHER, "reuse")
    assert empty.jaccard is None and question_flip_figure(empty).data


def test_other_texts_another_model_or_another_method_are_not_compared():
    other_model = replace(OTHER, provenance=replace(OTHER.provenance, model="another"))
    assert same_documents(SMALL, OTHER) and not same_documents(SMALL, other_model) and not same_documents(SMALL, RUN)
    assert question_flip_info(SMALL, other_model, "qcfuse") is None and question_flip_info(SMALL, OTHER, "nope") is None
    assert question_flip_figure(None).layout.annotations[0].text
