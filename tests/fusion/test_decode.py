"""Decoding one token at a time: any temperature, any end, and a model that computes no numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fake_runs import harbour_scenario
from worlds import tiny_runtime

from engine.compare import Comparison, contexts_of, create_methods
from engine.errors import EngineError
from engine.fusion.decode import decode
from engine.fusion.drafted import decode_drafted
from engine.model.cache import RequestCache

IDS = torch.tensor(list(b"The lamp was lit in"))


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    return tiny_runtime(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def asked(runtime):
    """Returns a function that decodes behind a short text."""

    def asked(logits=None, **more):
        model = runtime.model
        cache = RequestCache(model.spec, len(IDS) + 16, model.dtype, model.device)
        with torch.inference_mode():
            first = runtime.decoder.extend(IDS, 0, cache)[-1]
        return decode(runtime.decoder, first if logits is None else logits, len(IDS), cache, 8, end_ids=(), **more).ids.tolist()

    return asked


@pytest.mark.parametrize("temperature", [1e-5, 1e-20, 1e-40, 5e-324])
def test_a_temperature_near_zero_is_greedy(asked, temperature):
    assert asked(temperature=temperature) == asked()


def test_a_temperature_gives_other_tokens_by_seed_and_the_same_by_the_same(asked):
    tokens = [asked(temperature=2.0, seed=seed) for seed in (0, 0, 1, 2)]
    assert tokens[0] == tokens[1] and len({tuple(ids) for ids in tokens}) > 1


def test_whoever_reads_along_may_end_the_answer(asked):
    seen = []

    def on_token(ids):
        seen.append(list(ids))
        return len(ids) == 3

    assert asked(on_token=on_token) == asked()[:3] == seen[-1] and len(seen) == 3


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_model_that_computes_no_numbers_is_one_sentence(asked, temperature):
    with pytest.raises(EngineError, match=r"'tiny-llama' computes no numbers.*fetch them again"):
        asked(torch.full((260,), float("nan")), temperature=temperature)


@pytest.fixture
def filled(runtime):
    """Returns a filled cache with room, and the logits of the first token behind it."""
    model = runtime.model
    cache = RequestCache(model.spec, len(IDS) + 32, model.dtype, model.device)
    with torch.inference_mode():
        return cache, runtime.decoder.extend(IDS, 0, cache)[-1]


def drafts_of(own):
    """Returns drafts by what they have in common with an answer of 8 tokens."""
    wrong = [(token + 1) % 250 for token in own]
    return {
        "none": [],
        "the answer": [own],
        "its first half": [own[:4]],
        "it and more": [own + [7] * 20],
        "wrong from the start": [wrong],
        "wrong from the fourth on": [own[:3] + wrong[3:]],
        "two that take turns": [own[:2] + wrong[2:], own[:5] + wrong[5:]],
        "empty": [[], own],
    }


@pytest.mark.parametrize("kind", drafts_of(list(range(8))))
@pytest.mark.parametrize("num", [0, 1, 7, 8])
def test_drafts_change_no_answer(runtime, filled, asked, kind, num):
    cache, first = filled
    own = asked()
    drafts = [np.array(draft, dtype=np.int32) for draft in drafts_of(own)[kind]]
    assert decode_drafted(runtime.decoder, first, len(IDS), cache, num, drafts).tolist() == own[:num]


def test_a_right_draft_takes_one_pass_and_an_end_ends_it(runtime, filled, asked, monkeypatch):
    cache, first = filled
    own, passes, extend = asked(), [], runtime.decoder.extend

    def counted(ids, start, cache):
        passes.append(len(ids))
        return extend(ids, start, cache)

    monkeypatch.setattr(runtime.decoder, "extend", counted)
    draft = np.array(own, dtype=np.int32)
    assert decode_drafted(runtime.decoder, first, len(IDS), cache, 8, [draft]).tolist() == own and passes == [8]
    monkeypatch.setattr(runtime.decoder, "spec", replace(runtime.decoder.spec, eos_token_ids=(own[4],)))
    assert decode_drafted(runtime.decoder, first, len(IDS), cache, 8, [draft[:4]]).tolist() == own[: own.index(own[4])]


def test_a_comparison_whose_times_nobody_reads_gives_the_same_answers(tmp_path):
    runtime, request = tiny_runtime(tmp_path), harbour_scenario().request("q1")
    request = replace(request, chunks=request.chunks[:1], supporting=(), max_new_tokens=6, repeats=1)
    names = ("full", "reuse", "qcfuse", "epic", "random")
    methods = create_methods(names, request)
    prepared = runtime.prepare(request, contexts=contexts_of(methods.values(), request))
    with torch.inference_mode():
        read, unread = (Comparison(runtime, request, prepared, are_times_read=told).run(methods) for told in (True, False))
    for name in names:
        assert unread.method(name).answer_ids.tolist() == read.method(name).answer_ids.tolist()
        assert unread.method(name).quality == read.method(name).quality
    assert np.isnan(unread.method("qcfuse").token_times_s).all() and not np.isnan(unread.method("full").token_times_s).any()
