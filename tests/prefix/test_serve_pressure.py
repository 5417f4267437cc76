"""Serving under pressure: evictions while requests run, who gives up, prompts too large, requests that overlap."""

import itertools

import numpy as np
import pytest
import torch
from serve_worlds import (
    RESPONSE,
    SYSTEM,
    ask,
    fresh_prefill,
    serve,
    server_of,
    tokens,
)

from engine.errors import BadRequest, Cancelled
from engine.prefix.live_soak import growth_bytes, soak


@pytest.mark.parametrize("policy", ["lru", "saecache", "sae_g", "s3_fifo"])
def test_evicts_under_pressure_while_requests_run(llama, policy):
    """Requests begin, answer, end and give up in a random order in a cache much too small; all is checked at every step."""
    server, rng = server_of(llama, capacity=14, policy=policy, max_running=3), np.random.default_rng(7)
    size_bytes, running, num_evicted = server.pool.size_bytes, [], 0
    for step in range(60):
        if server.num_running < 3 and rng.random() < 0.6:
            session = int(rng.integers(5))
            prompt = tokens(40, seed=session % 2, kind=SYSTEM) + tokens(int(rng.integers(1, 90)), seed=10 + session)
            running.append(server.prefill(ask(prompt, float(step), session)))
        elif running:
            request = running.pop(int(rng.integers(len(running))))
            with request:
                if rng.random() < 0.7:
                    server.write_answer(request, tokens(int(rng.integers(0, 50)), seed=step, kind=RESPONSE))
                    num_evicted += len(server.finish(request).evicted)
        server.check_integrity()
        for request in running:
            assert server.columns.cached[request.pinned].all(), "a block of a running request left"
        assert server.num_running == len(running) and server.pool.size_bytes == size_bytes
        occupancy = server.occupancy()
        assert occupancy.queues.sum() == occupancy.kinds.sum() == 14 - occupancy.num_free == 14 - server.pages.num_free
    for request in running:
        server.close(request)
    assert not server.columns.num_pins.any() and num_evicted > 30


def test_what_is_reused_under_pressure_is_still_exact(llama):
    server, rng, num_reused = server_of(llama, capacity=20), np.random.default_rng(3), 0
    for step in range(30):
        prompt = tokens(64, seed=int(rng.integers(3))) + tokens(int(rng.integers(1, 100)), seed=50 + int(rng.integers(6)))
        with server.prefill(ask(prompt, float(step))) as running:
            reference = fresh_prefill(llama.decoder, prompt.ids)[0]
            torch.testing.assert_close(running.first.logits, reference, rtol=1e-4, atol=1e-4)
            num_reused += running.first.num_reused
            server.finish(running)
    assert num_reused > 300 and server.tree.num_evicted > 50


@pytest.mark.parametrize("num_layers_done", range(4))
def test_a_request_cancelled_half_way_leaves_no_reference_behind(llama, num_layers_done):
    prompt, server = tokens(100), server_of(llama)
    serve(server, ask(prompt[:48]))
    before, asked = server.occupancy(), itertools.count()
    with pytest.raises(Cancelled):
        server.prefill(ask(prompt), cancelled=lambda: next(asked) >= num_layers_done)
    server.check_integrity()
    assert server.num_running == 0 and not server.columns.num_pins.any() and not server.columns.num_refs.any()
    assert (server.occupancy().kinds == before.kinds).all()
    with server.prefill(ask(prompt)) as running:
        assert torch.equal(running.first.logits, fresh_prefill(llama.decoder, prompt.ids, (48,))[0])


def test_a_request_cancelled_while_it_answers_leaves_no_reference_behind(llama):
    server = server_of(llama)
    with pytest.raises(Cancelled), server.prefill(ask(tokens(40))) as running:
        server.generate(running, 20, llama.text, cancelled=lambda: True)
    server.check_integrity()
    assert server.num_running == 0 and server.tree.size == 0


@pytest.mark.parametrize("failing", ["load", "store"])
def test_an_error_leaves_no_reference_and_no_block_without_contents(llama, monkeypatch, failing):
    prompt, server = tokens(100), server_of(llama)
    serve(server, ask(prompt[:32]))

    def fail(*_):
        raise RuntimeError("the device is gone")

    with monkeypatch.context() as patch:
        patch.setattr(server.pool, failing, fail)
        with pytest.raises(RuntimeError, match="gone"):
            serve(server, ask(prompt))
    server.check_integrity()
    assert server.num_running == 0 and not server.columns.num_pins.any()
    # Whatever the tree was told, only written pages are read.
    with server.prefill(ask(prompt)) as running:
        assert running.first.num_reused == 32
        assert torch.equal(running.first.logits, fresh_prefill(llama.decoder, prompt.ids, (32,))[0])
        server.finish(running)
    server.check_integrity()
    assert serve(server, ask(prompt)).first.num_reused == 96


def test_a_prompt_larger_than_the_cache_keeps_its_first_blocks(llama):
    prompt, server = tokens(200), server_of(llama, capacity=5)
    served = serve(server, ask(prompt))
    assert (len(served.path), served.num_cached, served.num_inserted, len(served.evicted)) == (12, 5, 5, 0)
    again = serve(server, ask(prompt, 1.0))
    assert (again.first.num_reused, again.hit_blocks, again.num_inserted, len(again.evicted)) == (80, 5, 0, 0)
    other = serve(server, ask(tokens(200, seed=9), 2.0))
    assert (other.num_inserted, len(other.evicted)) == (5, 5)


def test_two_requests_of_one_prompt_may_run_at_once(llama):
    prompt, server = tokens(80), server_of(llama, max_running=2)
    first, second = server.prefill(ask(prompt)), server.prefill(ask(prompt))
    assert server.finish(first).num_inserted == 5
    assert server.finish(second).num_inserted == 0
    server.check_integrity()


def test_time_does_not_go_backwards_for_a_request_that_ends_late(llama):
    server = server_of(llama, max_running=2)
    early = server.prefill(ask(tokens(32), 1.0))
    serve(server, ask(tokens(32, seed=1), 5.0))
    blocks = server.finish(early).path
    assert server.columns.last_s[blocks].tolist() == [5.0, 5.0]


def test_requests_that_cannot_be_served_are_refused_in_one_sentence(llama):
    server = server_of(llama)
    with pytest.raises(BadRequest, match="prompt is empty"):
        server.prefill(ask(tokens(0)))
    with pytest.raises(BadRequest, match="2,040 tokens and the answer may take 64; the model reads at most 2,048"):
        server.prefill(ask(tokens(2040)))
    with server.prefill(ask(tokens(20))) as running:
        with pytest.raises(BadRequest, match="1 requests are running"):
            server.prefill(ask(tokens(20)))
        with pytest.raises(BadRequest, match="there is room for"):
            server.write_answer(running, tokens(2100))
    server.check_integrity()
    with pytest.raises(BadRequest, match="at least 1"):
        server_of(llama, capacity=0)


def test_a_thousand_requests_leave_memory_flat(llama):
    server = server_of(llama, capacity=12, policy="saecache", num_rows=64)
    pointer = server.pool._keys.data_ptr()
    resident = soak(server, 1_000, seed=0)
    server.check_integrity()
    assert server.tree.num_evicted > 1_000 and server.pool._keys.data_ptr() == pointer and len(server._names) <= 64
    assert len(resident) == 10 and growth_bytes(resident) < 2 * 2**20, resident
