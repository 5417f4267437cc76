"""Every rule that chooses tokens against a slow version of it, written out on transformers' own layers."""

from fractions import Fraction

import pytest
import torch
from rules import attention, behind, causal, logits_of, mixed, project, rotate
from rules_scores import (
    NUM_SINKS,
    behind_anchors,
    by_weighed_heads,
    deviation,
    full_view,
    key_norms,
    kvzip,
    num_anchors,
    received,
    reduced,
)
from rules_world import FAMILIES, make_world, run
from worlds import TEXTS, lighthouse

from engine.fusion.compose import create_method
from engine.types import CHUNK_CONTEXTS

# The absolute tolerance is a share of the largest score.
RELATIVE, ABSOLUTE = 1e-3, 1e-5
CONTEXTS = ("system", "alone")
RATIO = 0.35


@pytest.fixture(scope="module", params=FAMILIES)
def world(request, tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("cache"), request.param)


def assert_best_first(listed, scores, of):
    """Asserts that no index of `listed` is clearly worse than one behind it, or than one of `of` that is not listed."""
    absolute = ABSOLUTE * float(scores.abs().max())
    bound = max((float(scores[i]) for i in set(of) - set(listed)), default=float("-inf"))
    for score in reversed([float(scores[i]) for i in listed]):
        assert score >= bound - absolute - RELATIVE * abs(bound)
        bound = max(bound, score)


def assert_ranked_by(done, scores, last=()):
    """Asserts scores and ranking of a plan, the tokens `last` behind all others, and that the first of it are the rows."""
    absolute = ABSOLUTE * float(scores.max())
    assert absolute > 0
    torch.testing.assert_close(torch.from_numpy(done.plan.scores), scores, rtol=RELATIVE, atol=absolute)
    assert_ranking_covers_all_document_tokens(done)
    order = [position - done.prompt.system_len for position in done.plan.ranking.tolist()]
    ahead = order[: len(order) - len(last)]
    assert not set(ahead) & set(last)
    assert_best_first(ahead, scores, ahead)
    assert_rows_are_the_first_of_the_ranking(done, RATIO)


def assert_ranking_covers_all_document_tokens(done):
    assert sorted(done.plan.ranking.tolist()) == list(range(done.prompt.system_len, done.prompt.question_start))


def assert_rows_are_the_first_of_the_ranking(done, ratio):
    question = list(range(done.prompt.question_start, done.prompt.num_tokens))
    count = done.case.budget(ratio)
    assert done.plan.rows.tolist() == sorted(done.plan.ranking[:count].tolist()) + question


def assert_anchors(done, scores_of, ratio, num_layers, num_forced=0):
    """Asserts that a plan's anchors are the system part and, of each chunk, the first tokens that are forced and the best others.

    Returns them, positions per layer. scores_of: chunk index -> [L, n].
    """
    anchors = [torch.from_numpy(row).long() for row in done.plan.anchors]
    assert len(anchors) == num_layers
    chunk_scores = [scores_of(index) for index in range(len(done.prompt.chunk_spans))]
    for layer, row in enumerate(anchors):
        positions = row.tolist()
        assert positions == sorted(positions)
        assert positions[: done.prompt.system_len] == list(range(done.prompt.system_len))
        for (start, stop), scores in zip(done.prompt.chunk_spans, chunk_scores, strict=True):
            picked, count = [p - start for p in positions if start <= p < stop], num_anchors(ratio, stop - start)
            forced = list(range(min(num_forced, count)))
            assert len(picked) == count and picked[: len(forced)] == forced
            rest = sorted(picked[len(forced) :], key=lambda i, row=scores[layer]: -float(row[i]))
            if rest:
                assert_best_first(rest, scores[layer], range(num_forced, stop - start))
    return anchors


def test_written_out_layers_are_those_of_transformers(world):
    case = run(world, create_method("reuse"), lighthouse()).case
    at = torch.arange(len(case.ids))
    hidden, visible = case.hf.model.embed_tokens(case.ids), causal(at, len(at))
    for layer in range(case.num_layers):
        p = project(case.hf, layer, hidden)
        weights = attention(rotate(case.hf, p.query, at), rotate(case.hf, p.keys, at), visible)
        torch.testing.assert_close(weights, case.full.attentions[layer][0], rtol=1e-4, atol=1e-5)
        hidden = behind(case.hf, layer, hidden, mixed(weights, p.values))
    torch.testing.assert_close(logits_of(case.hf, hidden), case.full.logits[0, -1], rtol=1e-4, atol=1e-4)


def test_random_order_is_one_of_all_document_tokens_and_set_by_the_seed(world):
    drawn = [run(world, create_method("random", ratio=RATIO, seed=seed), lighthouse()) for seed in (3, 3, 4)]
    orders = [done.plan.ranking.tolist() for done in drawn]
    assert orders[0] == orders[1] != orders[2]
    for done in drawn:
        assert_ranking_covers_all_document_tokens(done)
        assert done.plan.ranking.tolist() != sorted(done.plan.ranking.tolist())
        assert_rows_are_the_first_of_the_ranking(done, RATIO)
    # The same length gives the same order, whatever the words are.
    other = run(world, create_method("random", ratio=RATIO, seed=3), lighthouse([text.upper() for text in TEXTS]))
    assert other.plan.ranking.tolist() == orders[0]


@pytest.mark.parametrize("ratio", [0.1, 0.35, 0.8])
@pytest.mark.parametrize("context", CONTEXTS)
def test_epic_takes_the_same_share_of_every_start(world, ratio, context):
    done = run(world, create_method("epic", ratio=ratio), lighthouse(context=context))
    depth = {}
    for start, stop in done.prompt.chunk_spans:
        for place, position in enumerate(range(start, stop), start=1):
            depth[position] = Fraction(place, stop - start)
    assert done.plan.ranking.tolist() == sorted(depth, key=lambda position: (depth[position], position))
    assert_rows_are_the_first_of_the_ranking(done, ratio)
    for start, stop in done.prompt.chunk_spans:
        inside = [row for row in done.chosen if start <= row < stop]
        assert inside == list(range(start, start + len(inside)))
        assert abs(len(inside) - ratio * (stop - start)) <= 1


@pytest.mark.parametrize("k", [1, 16, 40])
@pytest.mark.parametrize("context", CHUNK_CONTEXTS)
def test_epic_with_k_takes_the_first_tokens_of_every_chunk_but_an_exact_first_one(world, k, context):
    done = run(world, create_method("epic", k=k), lighthouse(context=context))
    spans = done.prompt.chunk_spans if context in ("alone", "primed-one") else done.prompt.chunk_spans[1:]
    assert done.chosen == [position for start, stop in spans for position in range(start, min(stop, start + k))]
    assert done.plan.ranking is None
    assert done.plan.rows[len(done.chosen) :].tolist() == list(range(done.prompt.question_start, done.prompt.num_tokens))


@pytest.mark.parametrize("context", [*CONTEXTS, "primed", "primed-one"])
def test_cacheblend_ranks_by_what_layer_one_values_miss(world, context):
    done = run(world, create_method("cacheblend", ratio=RATIO), lighthouse(context=context))
    assert_ranked_by(done, deviation(done.case))


@pytest.mark.parametrize("context", CONTEXTS)
def test_kvshare_ranks_by_deviation_times_attention_received_at_layer_one(world, context):
    done = run(world, create_method("kvshare", ratio=RATIO), lighthouse(context=context))
    assert_ranked_by(done, deviation(done.case) * received(done.case))


@pytest.mark.parametrize("reduction", ["mean", "max"])
@pytest.mark.parametrize("context", CONTEXTS)
def test_qclast_reads_the_last_layer_of_the_question_behind_the_system_part(world, reduction, context):
    done = run(world, create_method("qclast", ratio=RATIO, reduction=reduction), lighthouse(context=context))
    last = done.case.num_layers - 1
    (weights,) = behind_anchors(done.case, [torch.arange(done.prompt.system_len)] * last, (last,))
    assert done.plan.critical_layers == (last,)
    assert_ranked_by(done, reduced(weights, reduction))


@pytest.mark.parametrize("reduction", ["mean", "max"])
@pytest.mark.parametrize("context", CONTEXTS)
def test_qcall_reads_all_layers_of_the_question_over_the_whole_stored_context(world, reduction, context):
    done = run(world, create_method("qcall", ratio=RATIO, reduction=reduction), lighthouse(context=context))
    layers = full_view(done.case)
    assert done.plan.critical_layers == tuple(range(len(layers)))
    assert_ranked_by(done, sum(reduced(weights, reduction) for weights in layers) / len(layers))


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("context", CONTEXTS)
def test_infoflow_takes_the_norm_over_the_question_of_the_mean_over_heads(world, num_layers, context):
    chosen = {} if num_layers == 2 else {"num_layers": num_layers}
    done = run(world, create_method("infoflow", ratio=RATIO, **chosen), lighthouse(context=context))
    layers = full_view(done.case)[-num_layers:]
    assert_ranked_by(done, sum(reduced(weights, "norm") for weights in layers) / num_layers)


@pytest.mark.parametrize("rule", ["high", "low", "kvzip"])
@pytest.mark.parametrize("layer", [0, 1, 3])
@pytest.mark.parametrize("context", CONTEXTS)
def test_qcfuse_reads_one_layer_of_the_question_behind_its_anchors(world, rule, layer, context):
    asked = dict(ratio=RATIO, anchor_rule=rule, anchor_ratio=0.15, critical_layer=layer)
    done = run(world, create_method("qcfuse", **asked), lighthouse(context=context))
    case, sign = done.case, -1.0 if rule == "low" else 1.0

    def scores_of(index):
        return kvzip(case, index) if rule == "kvzip" else sign * key_norms(case, index)

    anchors = assert_anchors(done, scores_of, 0.15, max(layer, 1), NUM_SINKS if rule == "kvzip" else 0)
    (weights,) = behind_anchors(case, anchors, (layer,))
    assert_ranked_by(done, reduced(weights, "mean"))


def test_qcfuse_takes_the_best_calibrated_layer_and_the_largest_attention_where_it_is_told(world):
    done = run(world, create_method("qcfuse", ratio=RATIO, reduction="max"), lighthouse(), critical_layers=(2, 3, 1))
    anchors = assert_anchors(done, lambda index: key_norms(done.case, index), 0.1, 2)
    (weights,) = behind_anchors(done.case, anchors, (2,))
    assert done.plan.critical_layers == (2,)
    assert_ranked_by(done, reduced(weights, "max"))


@pytest.mark.parametrize("asked", [{}, {"reduction": "mean"}, {"num_layers": 2, "anchor_ratio": 0.02}], ids=["max", "mean", "two"])
@pytest.mark.parametrize("context", CONTEXTS)
def test_qcfuse_cv_averages_the_best_layers_behind_kvzip_anchors(world, asked, context):
    done = run(world, create_method("qcfuse_cv", ratio=RATIO, **asked), lighthouse(context=context), critical_layers=(3, 1, 2, 0))
    case, layers = done.case, tuple(sorted((3, 1, 2)[: asked.get("num_layers", 3)]))
    anchors = assert_anchors(done, lambda index: kvzip(case, index), asked.get("anchor_ratio", 0.1), 3, NUM_SINKS)
    weights = behind_anchors(case, anchors, layers)
    assert done.plan.critical_layers == layers
    assert_ranked_by(done, sum(reduced(w, asked.get("reduction", "max")) for w in weights) / len(layers))


@pytest.mark.parametrize("use_deviation", [True, False])
@pytest.mark.parametrize("context", [*CONTEXTS, "primed", "primed-one"])
def test_qcfuse_learned_weighs_heads_by_what_was_fitted_and_tokens_by_deviation(world, use_deviation, context):
    done = run(world, create_method("qcfuse_learned", ratio=RATIO, use_deviation=use_deviation), lighthouse(context=context))
    case, fitted = done.case, world.runtime.pipeline.head_weights
    anchors = assert_anchors(done, lambda index: key_norms(case, index), 0.1, fitted.layers[-1])
    scores = by_weighed_heads(behind_anchors(case, anchors, fitted.layers), fitted.weights)
    if use_deviation:
        scores = scores * deviation(case).sqrt()
    first = range(case.chunk_spans[0][1] - case.system_len) if context in ("system", "primed") else ()
    assert case.is_exact == [bool(first), False, False, False]
    assert_ranked_by(done, scores, last=first)
