"""Decode steps on fixed memory write what the ordinary ones write; where they cannot be had, the reason is kept."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch
from laws import TOLERANCE, filled, prefill
from worlds import TEXTS, lighthouse

from engine.fusion.decode import decode
from engine.fusion.steps import DecodeSteps
from engine.model.decoder import Decoder
from kernels import reference

NUM_TOKENS = 8


class Tape:
    """Captures as a GPU would, on a CPU: the work is kept and done again, its result copied to one place in memory."""

    def __init__(self):
        self.num_captured = self.num_repeated = 0

    def __call__(self, compute):
        self.num_captured += 1
        place = torch.empty_like(compute())

        def repeat():
            self.num_repeated += 1
            return place.copy_(compute())

        return repeat


def attend(query, keys, values, rows):
    """The reference, which stops at the row's position, whatever its blocks say."""
    return reference.selected_attention(query, keys, values, rows)


def steps_of(world, capture):
    """Returns a decoder whose attention finds its last key by itself, and its steps."""
    own = {"selected_attention": attend, "sparse_prefill_attention": lambda *args: reference.sparse_prefill_attention(*args)}
    decoder = Decoder(world.runtime.model, replace(world.runtime.decoder.ops, **own))
    return decoder, DecodeSteps(decoder, capture)


def answer(world, name, texts=TEXTS, decoder=None, steps=None, **more):
    """Returns the ids of an answer behind a method's cache, and what was prefilled."""
    done = prefill(world, name, lighthouse(texts))
    decoder = decoder or world.runtime.decoder
    got = decode(decoder, done.result.logits, done.prompt.num_tokens, done.cache, NUM_TOKENS, end_ids=(), steps=steps, **more)
    return got.ids.tolist(), done


@pytest.mark.parametrize("name", ["full", "reuse", "qcfuse"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_fixed_steps_write_the_same_answer(world, name, temperature):
    tape = Tape()
    decoder, steps = steps_of(world, tape)
    expected, law = answer(world, name, temperature=temperature)
    got, done = answer(world, name, decoder=decoder, steps=steps, temperature=temperature)
    assert got == expected and steps.hindrance is None
    assert tape.num_captured == 1 and tape.num_repeated == NUM_TOKENS - 1
    end = done.prompt.num_tokens + NUM_TOKENS - 1
    torch.testing.assert_close(done.cache.keys[:, :end], law.cache.keys[:, :end], **TOLERANCE)
    torch.testing.assert_close(done.cache.values[:, :end], law.cache.values[:, :end], **TOLERANCE)
    assert torch.equal(filled(done, "values"), filled(law, "values")) and done.cache.keys[:, end:].isnan().all()


def test_a_cache_is_captured_once_and_forgotten_with_it(world):
    tape = Tape()
    decoder, steps = steps_of(world, tape)
    _, done = answer(world, "reuse", decoder=decoder, steps=steps)
    again = prefill(world, "reuse", lighthouse(TEXTS[:2]), cache=done.cache)
    decode(decoder, again.result.logits, again.prompt.num_tokens, again.cache, 3, end_ids=(), steps=steps)
    assert tape.num_captured == 1
    answer(world, "reuse", TEXTS[:2], decoder=decoder, steps=steps)
    assert tape.num_captured == 2
    memory = weakref.ref(done.cache.keys)
    del done, again
    gc.collect()
    assert memory() is None


def test_a_context_read_otherwise_is_decoded_eagerly(world):
    tape = Tape()
    decoder, steps = steps_of(world, tape)
    assert answer(world, "ape", decoder=decoder, steps=steps)[0] == answer(world, "ape")[0]
    assert tape.num_captured == 0 and steps.hindrance is None


def test_a_refused_capture_is_decoded_eagerly_and_says_why(world, caplog):
    def refuse(compute):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    decoder, steps = steps_of(world, refuse)
    assert answer(world, "reuse", decoder=decoder, steps=steps)[0] == answer(world, "reuse")[0]
    assert steps.hindrance == "CUDA refused: operation not permitted when stream is capturing"


def test_without_a_gpu_steps_are_eager(world):
    steps = DecodeSteps(world.runtime.decoder)
    assert answer(world, "reuse", steps=steps)[0] == answer(world, "reuse")[0]
    assert steps.hindrance == "a CPU has none" and steps.note == ""
    assert "on the host" in DecodeSteps(world.runtime.decoder, Tape()).hindrance
