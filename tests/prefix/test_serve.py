"""Serving through the prefix cache: reused blocks give the bits of a fresh prefill, and nothing stays behind whoever gives up."""

import numpy as np
import pytest
import torch
from serve_worlds import COT, CPU, RESPONSE, SYSTEM, TOOL, USER, ask, fresh_cache, fresh_prefill, run_rows, serve, server_of, tokens

from engine.errors import Cancelled
from engine.fusion.decode import decode
from engine.prefix.roles import Message, typed
from engine.recorder import Recorder


@pytest.mark.parametrize(("num_shared", "num_tokens"), [(16, 17), (48, 75), (160, 400), (304, 320)])
def test_reused_blocks_give_bitwise_the_logits_of_a_fresh_prefill_with_the_same_split(world, num_shared, num_tokens):
    prompt, server = tokens(num_tokens), server_of(world)
    serve(server, ask(prompt[:num_shared]))
    with server.prefill(ask(prompt)) as running:
        logits, cache = fresh_prefill(world.decoder, prompt.ids, (num_shared,))
        assert running.first.num_reused == num_shared
        assert torch.equal(running.first.logits, logits)
        for name in ("keys", "values"):
            assert torch.equal(getattr(running.cache, name)[:, :num_tokens], getattr(cache, name)[:, :num_tokens]), name


def test_blocks_of_a_prompt_that_went_another_way_give_the_bits_that_it_computed(world):
    first, server = tokens(150), server_of(world)
    second = first[:96] + tokens(60, seed=1)
    serve(server, ask(first))
    with server.prefill(ask(second)) as running:
        _, before = fresh_prefill(world.decoder, first.ids)
        logits = run_rows(world.decoder, second.ids[96:], 96, before)
        assert running.first.num_reused == 96 and torch.equal(running.first.logits, logits)


def test_a_conversation_gives_the_bits_of_its_own_history(world):
    """Three turns; the reference runs the same rows in one contiguous cache: prompt, answer, what a turn adds, and so on."""
    server, cache, written = server_of(world), fresh_cache(world.decoder), 0
    messages = [Message("system", "You keep the tide tables of Vell."), Message("user", "When is high water?")]
    for turn, reply in enumerate(("At six, and at half past six in the evening.", "Ada Quill.", "No ferry runs on Sundays.")):
        prompt, answer = world.chat.prompt(messages), world.chat.answer(reply)
        with server.prefill(ask(prompt, float(turn), turn=turn)) as running:
            start = written // 16 * 16
            assert running.first.num_reused == start
            logits = run_rows(world.decoder, prompt.ids[start:], start, cache)
            assert torch.equal(running.first.logits, logits)
            server.write_answer(running, answer)
            server.finish(running)
        run_rows(world.decoder, answer.ids, len(prompt), cache)
        written = len(prompt) + len(answer)
        messages += [Message("assistant", reply), Message("user", f"And who says so, question {turn}?")]
    server.check_integrity()


def test_reuse_is_close_to_a_prefill_in_one_piece(world):
    prompt, server = tokens(333), server_of(world)
    serve(server, ask(prompt[:200]))
    with server.prefill(ask(prompt)) as running:
        torch.testing.assert_close(running.first.logits, fresh_prefill(world.decoder, prompt.ids)[0], rtol=1e-4, atol=1e-4)


def test_a_prompt_that_is_cached_to_its_end_computes_its_last_token(world):
    prompt, server = tokens(64), server_of(world)
    serve(server, ask(prompt))
    with server.prefill(ask(prompt)) as running:
        assert running.first.num_reused == 63
        torch.testing.assert_close(running.first.logits, fresh_prefill(world.decoder, prompt.ids)[0], rtol=1e-4, atol=1e-4)
        served = server.finish(running)
    assert (served.hit_blocks, served.num_inserted) == (4, 0)


def test_blocks_are_typed_by_role(llama):
    server = server_of(llama)
    talk = [
        Message("system", "You keep the harbour's books, and nothing else."),
        Message("tools", "log(day): returns the ships of a day, one a line."),
        Message("user", "How many ships came in on the first of May, and whose were they?"),
        Message("assistant", "I shall look into the log of the first of May."),
        Message("tool", "Corvenna, slate. Old Grace, herring. Marten, empty, for repair."),
    ]
    answer = llama.chat.answer("<think>Three lines, so three ships, of which one is empty.</think>Three ships came in on the first of May.")
    prompt = llama.chat.prompt(talk)
    served = serve(server, ask(prompt, is_agent=True), answer)
    whole = prompt + answer
    assert len(served.path) == served.num_cached == len(whole) // 16
    by_hand = [np.bincount(whole.kinds[i * 16 : i * 16 + 16], minlength=5) for i in range(len(served.path))]
    for kind, counts in zip(server.columns.kind[served.path].tolist(), by_hand, strict=True):
        assert counts[kind] == counts.max()
    assert set(server.columns.kind[served.path].tolist()) == {SYSTEM, USER, TOOL, RESPONSE, COT}
    assert server.occupancy().kinds.sum() == server.tree.size == len(served.path)


def test_a_generated_answer_is_the_models_and_is_found_by_the_next_turn(world):
    prompt, server = tokens(70), server_of(world)
    with server.prefill(ask(prompt)) as running:
        ids = server.generate(running, 30, world.text)
        served = server.finish(running)
    logits, cache = fresh_prefill(world.decoder, prompt.ids)
    assert ids.tolist() == decode(world.decoder, logits, 70, cache, 30).ids.tolist()
    # Token 30 was never computed, so what is cached ends before it.
    num_known = 70 + min(len(ids), 29)
    assert len(served.path) == num_known // 16
    later = prompt + typed(ids, RESPONSE) + tokens(20, seed=2)
    with server.prefill(ask(later)) as running:
        assert running.first.num_reused == num_known // 16 * 16
        torch.testing.assert_close(running.first.logits, fresh_prefill(world.decoder, later.ids)[0], rtol=1e-4, atol=1e-4)


def test_the_spans_tell_what_was_loaded_and_computed(llama):
    prompt, server = tokens(100), server_of(llama)
    serve(server, ask(prompt[:64]))
    served = serve(server, ask(prompt))
    loads = [span for span in served.first.spans if span.stage == "load"]
    layers = [span.layer for span in served.first.spans if span.stage == "recompute"]
    assert [span.size_bytes for span in loads] == [4 * server.pool.page_bytes] and layers == list(range(llama.decoder.spec.num_layers))
    busy_s = sum(span.end_s - span.start_s for span in served.first.spans)
    assert 0 < busy_s <= served.first.ttft_s and served.insert_s > 0


@pytest.mark.parametrize("num_tokens", [5, 16, 40])
def test_a_held_text_is_found_to_its_last_token_by_whoever_goes_on_with_it(world, num_tokens):
    text, server, cache = tokens(num_tokens), server_of(world), fresh_cache(world.decoder)
    asked = ask(text[:0])
    with server.hold(asked, cache, Recorder(CPU), text) as running:
        assert running.first.num_reused == 0
        served = server.finish(running)
    server.check_integrity()
    assert (served.hit_blocks, served.num_inserted, server.num_running) == (0, -(-num_tokens // 16), 0)
    again = fresh_cache(world.decoder)
    with server.hold(ask(text, 1.0), again, Recorder(CPU)) as running:
        assert running.first.num_reused == num_tokens
        assert server.finish(running).hit_blocks == -(-num_tokens // 16)
    for name in ("keys", "values"):
        assert torch.equal(getattr(again, name)[:, :num_tokens], getattr(cache, name)[:, :num_tokens]), name
    longer = text + tokens(30, seed=3)
    with server.hold(ask(longer, 2.0), again, Recorder(CPU)) as running:
        assert running.first.num_reused == num_tokens // 16 * 16
        server.finish(running)
    server.check_integrity()


def test_a_held_text_that_is_given_up_leaves_nothing(llama):
    server, text = server_of(llama), tokens(40)
    with pytest.raises(Cancelled):
        server.hold(ask(text), fresh_cache(llama.decoder), Recorder(CPU), cancelled=lambda: True)
    with server.hold(ask(text), fresh_cache(llama.decoder), Recorder(CPU)):
        pass
    server.check_integrity()
    assert server.tree.size == 0 and not server.columns.num_pins.any()
