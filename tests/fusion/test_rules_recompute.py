"""What methods do beside choosing tokens, against slow versions: stored chunks, corrected keys, filtered and parallel reading."""

import pytest
import torch
from rules_recompute import recompute_filtered, recompute_shifted, side_by_side
from rules_scores import deviation, kvzip
from rules_world import FAMILIES, make_world, run
from worlds import lighthouse

from engine.fusion.compose import create_method
from engine.fusion.decode import decode
from engine.fusion.wrapper import WRAPPERS
from engine.types import CHUNK_CONTEXTS

TOLERANCE = dict(rtol=3e-4, atol=3e-4)


@pytest.fixture(scope="module", params=FAMILIES)
def world(request, tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("cache"), request.param)


def assert_same(done, expected):
    torch.testing.assert_close(done.keys, expected.cache.keys, **TOLERANCE)
    torch.testing.assert_close(done.values, expected.cache.values, **TOLERANCE)
    torch.testing.assert_close(done.logits, expected.logits, **TOLERANCE)


def continued(world, done, num_tokens):
    """Returns the engine's greedy answer behind a filled cache, end tokens included."""
    return decode(world.runtime.decoder, done.logits, done.prompt.num_tokens, done.cache, num_tokens, end_ids=()).ids.tolist()


@pytest.mark.parametrize("context", CHUNK_CONTEXTS)
def test_stored_chunks_are_what_transformers_gives_behind_their_prefix(world, context):
    # The addition decides, whatever the request says.
    added, other = create_method(f"reuse+{context}"), CHUNK_CONTEXTS[CHUNK_CONTEXTS.index(context) - 1]
    assert added.chunk_context == context
    for method, said in ((added, other), (create_method("reuse"), context)):
        done = run(world, method, lighthouse(context=said))
        case, spec = done.case, world.runtime.model.spec
        assert [p.is_exact for p in done.placed] == [True, *case.is_exact]
        for index, p in enumerate(done.placed[1:]):
            expected, importance = case.stored_chunk(index), kvzip(case, index)
            keys, values = (torch.empty(expected.keys.shape[1:]) for _ in range(2))
            for layer in range(spec.num_layers):
                p.chunk.read_keys(layer, keys)
                p.chunk.read_values(layer, values)
                torch.testing.assert_close(keys, expected.keys[layer], **TOLERANCE)
                torch.testing.assert_close(values, expected.values[layer], **TOLERANCE)
            torch.testing.assert_close(p.chunk.importance, importance, rtol=1e-3, atol=1e-5)


# Ratios at which no exact token, whose deviation is noise, is among the first candidates.
@pytest.mark.parametrize("context, ratio", [("system", 0.2), ("alone", 0.2), ("alone", 0.8)])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_cacheblend_filters_by_deviation_layer_by_layer(world, num_layers, ratio, context):
    method = create_method("cacheblend", ratio=ratio, gradual_layers=num_layers)
    done = run(world, method, lighthouse(context=context))
    expected = recompute_filtered(done.case, deviation(done.case), done.case.budget(ratio), num_layers, 1.5)
    assert done.plan.rows.tolist() == expected.rows.tolist()
    assert len(done.chosen) == done.case.budget(ratio)
    assert_same(done, expected)


@pytest.mark.parametrize("context", ["system", "alone", "primed-one"])
@pytest.mark.parametrize("name, params", [("qcfuse", {}), ("epic", {"k": 3}), ("cacheblend", {}), ("qcfuse_learned", {})])
def test_k_shift_moves_keys_by_what_recomputed_ones_miss(world, name, params, context):
    done = run(world, create_method(f"{name}+k_shift", **params), lighthouse(context=context))
    rows, exact_layers = torch.from_numpy(done.plan.rows), 1 if name in ("qcfuse", "epic") else 2
    assert done.chosen
    assert_same(done, recompute_shifted(done.case, rows, exact_layers, 0.7, 4.0))
    plain = recompute_shifted(done.case, rows, exact_layers, 0.0, 4.0)
    assert not torch.allclose(done.logits, plain.logits, **TOLERANCE)


def test_k_shift_believes_as_much_as_it_is_told_and_leaves_untouched_chunks(world):
    inner = create_method("random", ratio=0.01, seed=1)
    done = run(world, WRAPPERS.create("k_shift", inner=inner, beta=1.0, kappa=0.5), lighthouse(context="alone"))
    untouched = [span for span in done.prompt.chunk_spans if not any(span[0] <= row < span[1] for row in done.chosen)]
    assert untouched
    for start, stop in untouched:
        torch.testing.assert_close(done.keys[1:, start:stop], done.case.context.keys[1:, start:stop], **TOLERANCE)
    assert_same(done, recompute_shifted(done.case, torch.from_numpy(done.plan.rows), 1, 1.0, 0.5))


@pytest.mark.parametrize("context", ["system", "primed"])
def test_k_shift_leaves_an_exact_chunk_bit_for_bit(world, context):
    plain, shifted = (run(world, create_method(name, ratio=0.3), lighthouse(context=context)) for name in ("random", "random+k_shift"))
    start, stop = plain.prompt.chunk_spans[0]
    kept = [position for position in range(start, stop) if position not in plain.chosen]
    assert 0 < len(kept) < stop - start
    assert torch.equal(shifted.keys[:, kept], plain.keys[:, kept])
    assert not torch.equal(shifted.keys[:, stop : plain.prompt.question_start], plain.keys[:, stop : plain.prompt.question_start])


@pytest.mark.parametrize("temperature, scale", [(0.9, 0.9), (0.5, 1.0), (1.0, 0.7), (1.0, 1.0)])
@pytest.mark.parametrize("positions", ["parallel", "request"])
def test_ape_reads_chunks_side_by_side(world, temperature, scale, positions):
    method = create_method("ape", temperature=temperature, scale=scale, positions=positions)
    done = run(world, method, lighthouse(context="alone"))
    logits, answer = side_by_side(done.case, temperature, scale, positions == "parallel", 4)
    assert done.plan.rows.tolist() == list(range(done.prompt.question_start, done.prompt.num_tokens))
    torch.testing.assert_close(done.logits, logits, **TOLERANCE)
    assert continued(world, done, 4) == answer


def test_ape_without_its_changes_is_reuse(world):
    done = run(world, create_method("ape", temperature=1.0, scale=1.0, positions="request"), lighthouse(context="alone"))
    reuse = run(world, create_method("reuse+system"), lighthouse(context="alone"))
    assert torch.equal(done.logits, reuse.logits)
    assert torch.equal(done.keys, reuse.keys) and torch.equal(done.values, reuse.values)
    assert continued(world, done, 4) == continued(world, reuse, 4)
