"""Measures every layer of a model: how well its question attention finds the answer, and what its choice costs in KL."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from engine.errors import BadRequest
from engine.fusion.base import FusionMethod, SelectionContext
from engine.fusion.plan import FusionPlan
from engine.fusion.probe import context_scores, run_probe
from engine.runtime import Prepared, Runtime
from engine.tuning.data import TuningSet
from engine.tuning.divergence import full_reference, kl_to_full
from engine.tuning.layer_choice import candidate_layers, measured_layers
from engine.types import FusionRequest, budget

SHARE, ANCHOR_RATIO = 0.10, 0.10


class Profile(NamedTuple):
    """What was measured, one array for each set. recall: [n, len(layers)]; kl: [n, len(kl_layers)]."""

    layers: tuple[int, ...]
    recall: tuple[np.ndarray, ...]
    kl_layers: tuple[int, ...]
    kl: tuple[np.ndarray, ...]


class _Ranked(NamedTuple):
    """A request and how every layer ranks its document tokens. orders: int32 [len(layers), N], best first."""

    request: FusionRequest
    orders: np.ndarray
    recall: list[float]


@dataclass(frozen=True, eq=False, slots=True)
class _Given(FusionMethod):
    """Recomputes the first tokens of a known order, so that one probe serves all layers."""

    name: ClassVar[str] = "given"

    order: np.ndarray
    ratio: float

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the order's first tokens and the question."""
        return context.plan(self.order[: budget(self.ratio, len(self.order))] + context.prompt.system_len)


@torch.inference_mode()
def profile_layers(runtime: Runtime, sets: Sequence[TuningSet], ratio: float, kl_rule: str) -> Profile:
    """Returns recall at every layer and KL at those that the rule names; layer 0, which is exact everywhere, tells nothing.

    Raises BadRequest.

    Args:
        ratio: recompute ratio of KL.
        kl_rule: as in `measured_layers`.
    """
    layers = tuple(range(1, runtime.model.spec.num_layers))
    ranked = [_ranked(runtime, tuning, layers) for tuning in sets]
    recall = tuple(np.asarray([one.recall for one in own]) for own in ranked)
    kl_layers = measured_layers(kl_rule, candidate_layers(recall, layers), layers)
    kl = []
    for tuning, own in zip(sets, ranked, strict=True):
        rows = []
        for i, one in enumerate(own):
            rows.append(_divergences(runtime, one, [layers.index(layer) for layer in kl_layers], ratio))
            print(f"{tuning.label}: KL {i + 1}/{len(own)}", file=sys.stderr)
        kl.append(np.asarray(rows))
    return Profile(layers, recall, kl_layers, tuple(kl))


def _ranked(runtime: Runtime, tuning: TuningSet, layers: tuple[int, ...]) -> list[_Ranked]:
    """Returns the samples of a set that fit the model, ranked; the others are named."""
    found = []
    for i, sample in enumerate(tuning.samples):
        request = FusionRequest(sample.question, sample.chunks, gold_answers=sample.answers, supporting=sample.supporting, max_new_tokens=1)
        try:
            found.append(_rank(runtime, request, layers))
        except BadRequest as error:
            print(f"left out {sample.sample_id}: {error}", file=sys.stderr)
            continue
        print(f"{tuning.label}: recall {i + 1}/{len(tuning.samples)}", file=sys.stderr)
    if not found:
        raise BadRequest(f"No sample of {tuning.label} fits the model's context; take shorter ones or lower --pad-to.")
    return found


def _rank(runtime: Runtime, request: FusionRequest, layers: tuple[int, ...]) -> _Ranked:
    """Returns every layer's ranking and its Recall@10 % of the answer's tokens."""
    prepared = runtime.prepare(request)
    prompt, gold = prepared.prompt, _gold(request, prepared)
    context = runtime.pipeline.selection(prompt, prepared.placed[request.chunk_context], runtime.pool.get("method", prompt.num_tokens + 64))
    try:
        probes = run_probe(context, layers, ANCHOR_RATIO, "high")
        orders = [runtime.decoder.ops.rank_tokens(context_scores(context, probe, "mean")).cpu().numpy() for probe in probes]
    finally:
        context.loader.close()
    best = [set(order[: budget(SHARE, prompt.num_doc_tokens)].tolist()) for order in orders]
    return _Ranked(request, np.asarray(orders, dtype=np.int32), [len(gold & own) / len(gold) for own in best])


def _gold(request: FusionRequest, prepared: Prepared) -> set[int]:
    """Returns the answer's tokens, counted from the first document token. Raises BadRequest where there are none."""
    index, first = {chunk.chunk_id: i for i, chunk in enumerate(request.chunks)}, prepared.prompt.system_len
    spans = (prepared.prompt.spans_of(index[chunk_id], text) for chunk_id, text in request.supporting)
    found = {position - first for own in spans for start, stop in own for position in range(start, stop)}
    if not found:
        raise BadRequest("Its supporting spans are not in its chunks; mend the sample.")
    return found


def _divergences(runtime: Runtime, ranked: _Ranked, rows: Sequence[int], ratio: float) -> list[float]:
    """Returns the KL to full prefill when the rankings at `rows` choose."""
    # Prepared anew: a bounded store may have dropped the chunks of the first samples by now.
    prepared = runtime.prepare(ranked.request)
    reference = full_reference(runtime, prepared.prompt, ranked.request.gold_answers[0])
    placed = prepared.placed[ranked.request.chunk_context]
    return [kl_to_full(runtime, _Given(ranked.orders[row], ratio), placed, reference) for row in rows]
