"""Laws of fusion behind a conversation's exact prefix: over every method, both tiny models."""

import oracle
import pytest
import torch
from chat_worlds import NOTES, TALK, ask, filled, plain_steps, steps, transformers_answer

from engine.chat.history import Turn
from engine.fusion.compose import create_method, has_ratio, method_names
from engine.fusion.decode import decode
from engine.model.prompt import LEAD_TEXT, SYSTEM_TEXT
from engine.types import budget

TOLERANCE = dict(rtol=1e-4, atol=1e-4)
METHOD = {name: create_method(name) for name in method_names()}
WITH_RATIO = [name for name in METHOD if has_ratio(name)]
ORACLED = [name for name, method in METHOD.items() if not method.reweighs and not method.corrects_keys]


@pytest.mark.parametrize("name", WITH_RATIO)
def test_full_ratio_behind_a_history_equals_prefill(world, name):
    done = steps(world.engine(), ask(ratio=1.0), name)
    expected = oracle.full_prefill(world.hf, done.prompt.ids)
    torch.testing.assert_close(done.result.logits, expected.logits, **TOLERANCE)
    torch.testing.assert_close(filled(done, "keys"), expected.keys, **TOLERANCE)
    torch.testing.assert_close(filled(done, "values"), expected.values, **TOLERANCE)
    full = steps(world.engine(), ask(), "full")
    answers = [decode(world.runtime.decoder, d.result.logits, d.prompt.num_tokens, d.cache, 8).ids.tolist() for d in (full, done)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", WITH_RATIO)
def test_zero_ratio_behind_a_history_is_direct_reuse_bit_for_bit(world, name):
    same_chunks = "+".join(["reuse", *name.split("+")[1:]])
    reuse, done = steps(world.engine(), ask(), same_chunks), steps(world.engine(), ask(ratio=0.0), name)
    assert torch.equal(done.result.logits, reuse.result.logits)
    assert torch.equal(filled(done, "keys"), filled(reuse, "keys")) and torch.equal(filled(done, "values"), filled(reuse, "values"))


@pytest.mark.parametrize("name", ORACLED)
def test_rows_behind_a_history_match_the_scatter_cache_oracle(world, name):
    done = steps(world.engine(), ask(ratio=0.35), name)
    context = done.method.chunk_context or "system"
    behind = [world.behind(context if done.method.reads_cache else "alone", i == 0) for i in range(len(NOTES))]
    keys, values = oracle.fused_cache(world.hf, done.prompt, behind, done.result.plan.exact_layers)
    expected = oracle.run_rows(world.hf, done.prompt.ids, done.result.plan.rows, keys, values)
    tolerance = dict(rtol=1e-4, atol=1e-3 if "primed" in context else 1e-4)
    torch.testing.assert_close(done.result.logits, expected.logits, **tolerance)
    torch.testing.assert_close(filled(done, "keys"), expected.keys, **tolerance)
    torch.testing.assert_close(filled(done, "values"), expected.values, **tolerance)


@pytest.mark.parametrize("name", method_names())
def test_reused_blocks_give_bitwise_what_the_same_split_gives_without_a_cache(world, name):
    engine, earlier = world.engine(), TALK[:1]
    steps(engine, ask(turns=earlier), "reuse")
    done = steps(engine, ask(), name)
    first = len(engine.history.past("", [Turn(*turn) for turn in earlier]).segment)
    found = done.use.num_hits
    assert found == first // 16 * 16 > 0 and done.use.num_computed == done.prompt.system_len - found > 0
    # The blocks found were computed as one piece with the few tokens behind them that filled no block.
    fresh = steps(engine, ask(), name, pieces=[(0, first), (found, done.prompt.system_len)])
    assert torch.equal(done.result.logits, fresh.result.logits)
    assert torch.equal(filled(done, "keys"), filled(fresh, "keys")) and torch.equal(filled(done, "values"), filled(fresh, "values"))


@pytest.mark.parametrize("name", WITH_RATIO)
def test_selection_behind_a_history_keeps_to_the_documents(world, name):
    done = steps(world.engine(), ask(ratio=0.2), name)
    prompt, rows = done.prompt, done.result.plan.rows
    chosen = rows[rows < prompt.question_start]
    assert len(chosen) == budget(0.2, prompt.num_doc_tokens) and chosen.min() >= prompt.system_len
    assert not any(p.is_exact for p in done.placed[1:]), "behind a history no stored chunk is exact"


@pytest.mark.parametrize("name", [n for n in METHOD if not METHOD[n].reweighs])
def test_one_chunk_of_a_first_turn_is_exact(world, name):
    done = steps(world.engine(), ask(turns=(), texts=NOTES[:1], ratio=0.1), name)
    assert done.placed[1].is_exact or not done.method.reads_cache or done.method.chunk_context == "primed-one"
    expected = oracle.full_prefill(world.hf, done.prompt.ids)
    if done.placed[1].is_exact or not done.method.reads_cache:
        torch.testing.assert_close(done.result.logits, expected.logits, **TOLERANCE)


@pytest.mark.parametrize("name", method_names())
def test_a_first_turn_is_the_plain_request(world, name):
    """The system part from the prefix cache or from the chunk store: the same rows are chosen, the same token follows."""
    request = ask(turns=(), ratio=0.35)
    done, plain = steps(world.engine(), request, name), plain_steps(world.runtime, request, name)
    assert done.prompt.ids.tolist() == plain.prompt.ids.tolist()
    first = done.prompt.system_len if name == "full" else 0
    assert done.result.plan.rows.tolist() == plain.result.plan.rows[first:].tolist()
    for ours, theirs in ((done.result.logits, plain.result.logits), (filled(done, "keys"), filled(plain, "keys"))):
        torch.testing.assert_close(ours, theirs, **TOLERANCE)
    if plain.result.plan.anchors is not None:
        assert done.result.plan.anchors.tolist() == plain.result.plan.anchors.tolist()


@pytest.mark.parametrize("turns", [0, 1, 2])
@pytest.mark.parametrize("is_cached", [False, True], ids=["cold", "cached"])
def test_full_answers_as_transformers_does(world, turns, is_cached):
    engine, request = world.engine(), ask(turns=TALK[:turns], method="full", max_new_tokens=12)
    if is_cached:
        engine.turn(request)
    turn = engine.turn(request)
    ids = turn.run.method("full").answer_ids.tolist()
    assert ids == transformers_answer(world.hf, turn.run.token_ids, 12)
    assert (turn.num_prefix_hits > 0) == is_cached and turn.num_fused_loaded == 0


def test_the_prompt_is_that_of_the_template(world):
    engine, tokenizer = world.engine(), world.runtime.model.tokenizer
    done = steps(engine, ask(), "full")
    told = [("system", SYSTEM_TEXT), *((role, text) for turn in TALK for role, text in zip(("user", "assistant"), turn, strict=True))]
    asked = "".join(f"Note {i}: {text}\n\n" for i, text in enumerate(NOTES)) + LEAD_TEXT + " Where was she born?"
    messages = [{"role": role, "content": text} for role, text in [*told, ("user", asked)]]
    expected = tokenizer.apply_chat_template(messages, tokenize=True, add_generation_prompt=True, return_dict=True)["input_ids"]
    assert done.prompt.ids.tolist() == expected
