"""Fusion in SGLang's own scheduler and layers against the built-in engine on the same model, store and requests."""

import numpy as np
import pytest
from fusion_worlds import ORDERS, assert_same_logits, lighthouse

from engine.serving.sglang.metadata import FIELD


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def world(request, running):
    """A tiny model in a server with both plugins, and in the built-in engine."""
    return running.world(request.param)


@pytest.mark.parametrize("order", ORDERS, ids=["0123", "2031", "3210"])
def test_full_ratio_gives_the_tokens_of_full_prefill(world, order):
    request = lighthouse(order, ratio=1.0)
    full, fused = world.ask(request, "full", 8), world.ask(request, "qcfuse", 8)
    assert fused.info["fused"] and full.info == {}
    assert fused.ids == full.ids
    assert fused.info["recomputed_tokens"] == world.prompt(request).num_doc_tokens


@pytest.mark.parametrize("ratio", [0.1, 0.2, 0.5])
def test_rows_and_logits_equal_the_built_in_engine(world, ratio):
    request = lighthouse(ratio=ratio)
    fused, own = world.ask(request), world.built_in(request)
    assert fused.info["rows"] == own.rows.tolist()
    assert fused.info["num_rows"] == len(own.rows) < world.prompt(request).num_tokens
    assert fused.info["critical_layers"] == list(own.layers)
    assert_same_logits(fused.top, own.log_probs)


@pytest.mark.parametrize("method", ["reuse", "epic", "cacheblend", "qclast", "qcall"])
def test_other_methods_of_the_built_in_engine_run_too(world, method):
    request = lighthouse(ORDERS[1], ratio=0.3)
    fused, own = world.ask(request, method), world.built_in(request, method)
    assert fused.info["rows"] == own.rows.tolist()
    assert_same_logits(fused.top, own.log_probs)


def test_a_request_chooses_its_layer_and_anchors(world):
    request = lighthouse(ratio=0.3)
    for params in ({"critical_layer": 1}, {"critical_layer": 2, "anchor_ratio": 0.5, "anchor_rule": "kvzip"}):
        fused, own = world.ask(request, **params), world.built_in(request, **params)
        assert fused.info["critical_layers"] == [params["critical_layer"]]
        assert fused.info["rows"] == own.rows.tolist()


def test_two_fused_and_two_ordinary_requests_in_one_batch_equal_each_alone(world):
    requests = [lighthouse(ORDERS[1], 0.2), lighthouse(ORDERS[2], 0.4, "When does the museum close?")]
    prompts = [world.prompt(request).ids.tolist() for request in requests]
    plain = [[20 + (7 * i * (k + 1)) % 200 for i in range(90 + 40 * k)] for k in range(2)]
    alone = [world.answer(ids, world.custom(request), 6) for ids, request in zip(prompts, requests, strict=True)]
    alone += [world.answer(ids, None, 6) for ids in plain]
    customs = [world.custom(requests[0]), None, world.custom(requests[1]), None]
    batch = [prompts[0], plain[0], prompts[1], plain[1]]
    answers = world.server.generate(batch, 6, customs, cache_salt=[f"batch {i}" for i in range(4)])
    infos = [answer["meta_info"].get(FIELD, [None])[0] for answer in answers]
    assert infos[0]["batch_size"] == 4, "the four were meant to meet in one forward pass"
    assert infos[0]["rows"] == alone[0].info["rows"] and infos[2]["rows"] == alone[1].info["rows"]
    assert infos[1] is None and infos[3] is None
    for answer, other in zip(answers, (alone[0], alone[2], alone[1], alone[3]), strict=True):
        assert answer["output_ids"] == other.ids


def test_a_cached_system_part_stays_and_the_rest_is_fused(world):
    request = lighthouse(ORDERS[2], ratio=0.2)
    prompt = world.prompt(request)
    world.answer([*prompt.ids[: prompt.system_len + 1].tolist(), 5, 6, 7], None, salt=None)
    fused, own = world.ask(request, salt=None), world.built_in(request)
    assert fused.cached >= prompt.system_len and fused.info["cached_prefix"] == fused.cached
    assert_same_logits(fused.top, own.log_probs)


def test_chunks_stand_behind_a_conversation_that_the_server_has_cached(world):
    request = lighthouse(ORDERS[1], ratio=0.25)
    moved, before = world.behind(request, "Earlier we spoke of lamps. " * 3)
    refused = world.answer(moved.ids.tolist(), world.custom_of(moved, 0.25))
    assert not refused.info["fused"] and "0 of its" in refused.info["reason"]
    world.answer([*before, 7, 8, 9], None, salt=None)
    fused = world.answer(moved.ids.tolist(), world.custom_of(moved, 0.25), salt=None)
    own = world.built_in_behind(moved, request)
    assert fused.info["cached_prefix"] == len(before)
    assert fused.info["rows"] == own.rows.tolist()
    assert_same_logits(fused.top, own.log_probs)


def test_approximate_kv_never_enters_the_shared_cache(world):
    request = lighthouse((1, 3, 0, 2), ratio=0.2, question="Who lit the lamp?")
    shared = world.prompt(request).system_len
    world.ask(request, max_new_tokens=4, salt=None)
    again = world.ask(request, "full", salt=None)
    assert again.info == {} and again.cached <= shared + len("Note ")


def test_a_salt_of_its_own_keeps_a_fused_context_for_the_next_turn(world):
    request = lighthouse((3, 1, 0, 2), ratio=0.2)
    first = world.ask(request, salt="reader 1", keep=True)
    second = world.ask(request, salt="reader 1", keep=True)
    assert first.info["fused"] and first.cached == 0
    assert not second.info["fused"] and "cached already" in second.info["reason"]
    assert second.cached == world.prompt(request).num_tokens - 1
    assert np.argmax(list(second.top.values())) == np.argmax(list(first.top.values()))


def test_server_and_built_in_engine_share_one_store(world):
    request = lighthouse((2, 3), ratio=0.2)
    world.ask(request)
    before = world.runtime.store.stats()
    assert all(chunk.source == "disk" for chunk in world.runtime.prepare(request).chunks["system"])
    assert world.runtime.store.stats().misses == before.misses


def test_what_cannot_be_fused_is_computed_in_full_and_says_why(world):
    request = lighthouse(ORDERS[0])
    prompt = world.prompt(request)
    ids, full = prompt.ids.tolist(), world.ask(request, "full", 4)
    spans, question = [list(span) for span in prompt.chunk_spans], list(prompt.question_span)
    early = [[spans[0][0] - 2, spans[0][1]], *spans[1:]]
    broken = {
        "must follow one another": f'{{"fusion": {{"chunks": [[40, 50], [60, 70]], "question": {question}}}}}',
        "stand behind the chunks": f'{{"fusion": {{"chunks": {spans}, "question": [3, 9]}}}}',
        "Unknown method": f'{{"fusion": {{"chunks": {spans}, "question": {question}, "method": "magic"}}}}',
        "no parameter 'depth'": f'{{"fusion": {{"chunks": {spans}, "question": {question}, "params": {{"depth": 1}}}}}}',
        "not valid": f'{{"fusion": {{"chunks": {spans}, "question": {question}, "params": {{"reduction": "median"}}}}}}',
        "from 0 to 1": f'{{"fusion": {{"chunks": {spans}, "question": {question}, "params": {{"ratio": 7}}}}}}',
        "model has layers 0 to 3": f'{{"fusion": {{"chunks": {spans}, "question": {question}, "params": {{"critical_layer": 9}}}}}}',
        "attention does not": f'{{"fusion": {{"chunks": {spans}, "question": {question}, "method": "ape"}}}}',
        "cannot be read": '{"fusion": {"chunks": 7}}',
        "not the project's system part": f'{{"fusion": {{"chunks": {early}, "question": {question}}}}}',
    }
    for reason, said in broken.items():
        answer = world.answer(ids, {FIELD: said}, 4)
        assert not answer.info["fused"] and reason in answer.info["reason"], answer.info
        assert answer.ids == full.ids, reason
