"""Decoding one token at a time: any temperature, any end, and a model that computes no numbers."""

import pytest
import torch
from worlds import tiny_runtime

from engine.errors import EngineError
from engine.fusion.decode import decode
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
