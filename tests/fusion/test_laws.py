"""Laws of fusion (design, section 4), over every method and combination by name, both tiny models and the chunk contexts."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import oracle
import pytest
import torch
from laws import TOLERANCE, filled, prefill
from worlds import TEXTS, lighthouse, tiny_runtime

from engine.chunks.prefetch import ContextLoader
from engine.errors import Cancelled
from engine.fusion.compose import create_method, has_ratio, method_names
from engine.fusion.decode import decode
from engine.model.cache import RequestCache
from engine.recorder import Recorder
from engine.types import CHUNK_CONTEXTS, budget

RATIOS = (0.0, 0.1, 0.35, 1.0)
METHOD = {name: create_method(name) for name in method_names()}
WITH_RATIO = [name for name in METHOD if has_ratio(name)]
READERS = [name for name, method in METHOD.items() if method.reads_cache]
EXACT = [name for name, method in METHOD.items() if not method.reweighs]
UNCORRECTED = [name for name, method in METHOD.items() if not method.corrects_keys]


@pytest.mark.parametrize("context", ["system", "alone"])
def test_full_prefill_equals_transformers(world, context):
    done = prefill(world, "full", lighthouse(context=context))
    expected = oracle.full_prefill(world.hf, done.prompt.ids)
    torch.testing.assert_close(done.result.logits, expected.logits, **TOLERANCE)
    torch.testing.assert_close(filled(done, "keys"), expected.keys, **TOLERANCE)
    torch.testing.assert_close(filled(done, "values"), expected.values, **TOLERANCE)


@pytest.mark.parametrize("name", WITH_RATIO)
@pytest.mark.parametrize("context", ["system", "alone"])
def test_full_ratio_equals_prefill(world, name, context):
    full = prefill(world, "full", lighthouse(context=context))
    done = prefill(world, name, lighthouse(ratio=1.0, context=context))
    torch.testing.assert_close(done.result.logits, full.result.logits, **TOLERANCE)
    torch.testing.assert_close(filled(done, "keys"), filled(full, "keys"), **TOLERANCE)
    torch.testing.assert_close(filled(done, "values"), filled(full, "values"), **TOLERANCE)
    answers = [decode(world.runtime.decoder, d.result.logits, d.prompt.num_tokens, d.cache, 8).ids.tolist() for d in (full, done)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("ratio", RATIOS)
def test_one_chunk_behind_the_system_part_is_exact(world, name, ratio):
    full = prefill(world, "full", lighthouse(TEXTS[:1]))
    done = prefill(world, name, lighthouse(TEXTS[:1], ratio=ratio))
    torch.testing.assert_close(done.result.logits, full.result.logits, **TOLERANCE)
    torch.testing.assert_close(filled(done, "keys"), filled(full, "keys"), **TOLERANCE)
    torch.testing.assert_close(filled(done, "values"), filled(full, "values"), **TOLERANCE)


@pytest.mark.parametrize("name", [n for n in EXACT if n in UNCORRECTED])
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("context", CHUNK_CONTEXTS)
def test_rows_match_the_scatter_cache_oracle(world, name, ratio, context):
    done = prefill(world, name, lighthouse(ratio=ratio, context=context))
    # The oracle turns a primed chunk from far below position 0, the engine rotates it once.
    tolerance = dict(rtol=1e-4, atol=1e-3 if "primed" in str(done.method.chunk_context or context) else 1e-4)
    behind = world.prefixes(done.method.chunk_context or context) if done.method.reads_cache else [[done.prompt.ids[:0]]] * len(TEXTS)
    keys, values = oracle.fused_cache(world.hf, done.prompt, behind, done.plan.exact_layers)
    expected = oracle.run_rows(world.hf, done.prompt.ids, done.plan.rows, keys, values)
    torch.testing.assert_close(done.result.logits, expected.logits, **tolerance)
    torch.testing.assert_close(filled(done, "keys"), expected.keys, **tolerance)
    torch.testing.assert_close(filled(done, "values"), expected.values, **tolerance)


@pytest.mark.parametrize("name", EXACT)
def test_first_layers_are_exact_for_every_token(world, name):
    done = prefill(world, name, lighthouse(ratio=0.1, context="alone"))
    expected = oracle.full_prefill(world.hf, done.prompt.ids)
    assert done.plan.exact_layers >= 1
    for layer in range(done.plan.exact_layers):
        torch.testing.assert_close(filled(done, "keys")[layer], expected.keys[layer], **TOLERANCE)
        torch.testing.assert_close(filled(done, "values")[layer], expected.values[layer], **TOLERANCE)


@pytest.mark.parametrize("name", WITH_RATIO)
def test_zero_ratio_is_direct_reuse_bit_for_bit(world, name):
    same_chunks = "+".join(["reuse", *name.split("+")[1:]])
    reuse, done = prefill(world, same_chunks, lighthouse()), prefill(world, name, lighthouse(ratio=0.0))
    assert torch.equal(done.result.logits, reuse.result.logits)
    assert torch.equal(filled(done, "keys"), filled(reuse, "keys"))
    assert torch.equal(filled(done, "values"), filled(reuse, "values"))


@pytest.mark.parametrize("name", [n for n in READERS if n in UNCORRECTED])
@pytest.mark.parametrize("ratio", (0.0, 0.1, 0.35))
def test_unselected_rows_are_the_stored_ones_bitwise(world, name, ratio):
    done = prefill(world, name, lighthouse(ratio=ratio))
    decoder, fresh = world.runtime.decoder, set(done.plan.rows.tolist())
    rope = done.method.rope_positions(done.prompt)
    rope = np.arange(done.prompt.num_tokens) if rope is None else rope
    for p in done.placed:
        kept = [i for i in range(p.stop - p.start) if p.start + i not in fresh]
        raw, value = (torch.empty(p.stop - p.start, decoder.spec.num_kv_heads, decoder.spec.head_dim) for _ in range(2))
        cos, sin = decoder.rope(torch.from_numpy(rope[p.start : p.stop]))
        for layer in range(done.plan.exact_layers, decoder.spec.num_layers):
            p.chunk.read_keys(layer, raw)
            p.chunk.read_values(layer, value)
            assert torch.equal(done.cache.keys[layer, p.start : p.stop][kept], decoder.rotated(raw, cos, sin)[kept])
            assert torch.equal(done.cache.values[layer, p.start : p.stop][kept], value[kept])


@pytest.mark.parametrize("name", WITH_RATIO)
def test_selection_keeps_to_the_budget_and_is_nested(world, name):
    before: set[int] = set()
    for ratio in (0.05, 0.2, 0.5, 0.9):
        done = prefill(world, name, lighthouse(ratio=ratio))
        chosen = [r for r in done.result.plan.rows.tolist() if r < done.prompt.question_start]
        assert len(chosen) == budget(ratio, done.prompt.num_doc_tokens) == len(set(chosen))
        assert min(chosen) >= done.prompt.system_len
        assert set(range(done.prompt.question_start, done.prompt.num_tokens)) <= set(done.result.plan.rows.tolist())
        assert before <= set(chosen)
        before = set(chosen)


@pytest.mark.parametrize("name", method_names())
def test_repeat_runs_and_synchronous_loading_give_the_same_bits(world, name):
    request = lighthouse(ratio=0.35)
    first, again, synchronous = prefill(world, name, request), prefill(world, name, request), prefill(world, name, request, depth=0)
    for other in (again, synchronous):
        assert np.array_equal(first.result.plan.rows, other.result.plan.rows)
        assert torch.equal(first.result.logits, other.result.logits)
        assert torch.equal(filled(first, "keys"), filled(other, "keys"))
        assert torch.equal(filled(first, "values"), filled(other, "values"))


@pytest.mark.parametrize("name", [*(n for n in READERS if METHOD[n].chunk_context not in ("primed", "primed-mean")), "qcfuse+primed-one"])
def test_new_order_reuses_the_same_chunks(world, name):
    prefill(world, name, lighthouse())
    before = world.runtime.store.stats()
    request = lighthouse()
    prefill(world, name, replace(request, chunks=request.chunks[::-1]))
    after = world.runtime.store.stats()
    assert after.num_files == before.num_files and after.misses == before.misses


def test_primed_chunks_are_stored_in_at_most_two_versions(tmp_path):
    small = SimpleNamespace(runtime=tiny_runtime(tmp_path))
    request = lighthouse(context="primed")
    for turn in range(len(TEXTS)):
        done = prefill(small, "reuse", replace(request, chunks=request.chunks[turn:] + request.chunks[:turn]))
        assert done.placed[1].is_exact and not any(p.is_exact for p in done.placed[2:])
    assert small.runtime.store.stats().num_files == 2 * len(TEXTS) + 1


@pytest.mark.parametrize("name", method_names())
def test_nothing_is_read_twice_and_nothing_needed_is_left_out(world, name):
    done = prefill(world, name, lighthouse(ratio=0.35))
    spec, fresh = world.runtime.model.spec, set(done.plan.rows.tolist())
    row_bytes = spec.num_kv_heads * spec.head_dim * 4
    needed = sum(p.stop - p.start for p in done.placed if not fresh >= set(range(p.start, p.stop)))
    stored = sum(p.stop - p.start for p in done.placed)
    least = 2 * needed * (spec.num_layers - done.plan.exact_layers) * row_bytes if done.method.reads_cache else 0
    most = 2 * stored * (spec.num_layers - 1) * row_bytes if done.method.reads_cache else 0
    assert least <= done.result.loaded_bytes <= most
    assert sum(span.size_bytes for span in done.result.spans) == done.result.loaded_bytes


@pytest.mark.parametrize("name", ["reuse", "qcfuse"])
def test_bytes_read_follow_the_formula(world, name):
    done = prefill(world, name, lighthouse(ratio=0.35))
    spec, fresh = world.runtime.model.spec, set(done.plan.rows.tolist())
    row_bytes = spec.num_kv_heads * spec.head_dim * 4
    read = sum(p.stop - p.start for p in done.placed if not fresh >= set(range(p.start, p.stop)))
    skipped_keys = sum(p.stop - p.start for p in done.placed) - read
    expected = 2 * read * (spec.num_layers - 1) + skipped_keys * len(done.plan.critical_layers)
    assert done.result.loaded_bytes == expected * row_bytes


@pytest.mark.parametrize("name", method_names())
def test_parts_add_up_to_the_time_to_first_token(world, name):
    result = prefill(world, name, lighthouse()).result
    parts = [getattr(result.parts_s, field) for field in result.parts_s.__dataclass_fields__]
    assert sum(parts) == pytest.approx(result.ttft_s, abs=1e-9)
    assert all(part >= 0 for part in parts)


@pytest.mark.parametrize("name", method_names())
def test_cancelled_request_leaves_nothing_behind(world, name):
    request = lighthouse()
    expected = prefill(world, name, request)
    logits, calls = expected.result.logits, iter(range(100))
    with pytest.raises(Cancelled):
        prefill(world, name, request, cancelled=lambda: next(calls) >= 2, cache=expected.cache)
    assert torch.equal(prefill(world, name, request, cache=expected.cache).result.logits, logits)


@pytest.mark.parametrize("name", EXACT)
def test_decode_equals_transformers_on_the_same_cache(world, name):
    done = prefill(world, name, lighthouse(ratio=0.35))
    total, steps = done.prompt.num_tokens, 6
    keys = [torch.cat([k.transpose(0, 1), torch.zeros(k.shape[1], steps, k.shape[2])], 1)[None] for k in filled(done, "keys")]
    values = [torch.cat([v.transpose(0, 1), torch.zeros(v.shape[1], steps, v.shape[2])], 1)[None] for v in filled(done, "values")]
    got = decode(world.runtime.decoder, done.result.logits, total, done.cache, steps).ids.tolist()
    ids, logits, expected = done.prompt.ids.copy(), done.result.logits, []
    for step in range(steps):
        token = int(logits.argmax())
        if token in world.runtime.model.spec.eos_token_ids:
            break
        expected.append(token)
        ids = np.append(ids, token)
        logits = oracle.run_rows(world.hf, ids, np.array([total + step]), keys, values).logits
    assert got == expected


def test_stored_key_rotated_equals_forward_at_an_offset(world):
    prepared = world.runtime.prepare(lighthouse(context="alone"))
    decoder, p = world.runtime.decoder, prepared.placed["alone"][2]
    expected, _ = oracle.chunk_keys_at(world.hf, prepared.prompt.ids[:0], prepared.prompt.ids[p.start : p.stop], p.start)
    raw = torch.empty(p.stop - p.start, decoder.spec.num_kv_heads, decoder.spec.head_dim)
    cos, sin = decoder.rope(torch.arange(p.start, p.stop))
    for layer in range(decoder.spec.num_layers):
        p.chunk.read_keys(layer, raw)
        torch.testing.assert_close(decoder.rotated(raw, cos, sin).transpose(0, 1), expected[layer], **TOLERANCE)
        torch.testing.assert_close(raw.norm(dim=-1).mean(1), decoder.rotated(raw, cos, sin).norm(dim=-1).mean(1), **TOLERANCE)


def test_loader_reads_at_most_its_depth_ahead(world):
    prepared, decoder = world.runtime.prepare(lighthouse()), world.runtime.decoder
    cache = RequestCache(decoder.spec, prepared.prompt.num_tokens, torch.float32, torch.device("cpu"))
    recorder = Recorder(torch.device("cpu"))
    loader = ContextLoader(decoder, prepared.placed["system"], cache, recorder, depth=2)
    loader.start(torch.arange(prepared.prompt.question_start, prepared.prompt.num_tokens))
    loader.close()
    assert len({span.layer for span in recorder.spans() if span.stage == "load"}) <= 2
