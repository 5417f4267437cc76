"""Measures what chunks computed behind different primers cost in KL, paired over the same requests."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from engine.chunks.layout import torch_dtype
from engine.chunks.precompute import ChunkKV, ChunkSource, mean_kv
from engine.chunks.prefetch import Placed
from engine.chunks.store import ChunkStore
from engine.errors import BadRequest
from engine.fusion.base import FusionMethod
from engine.fusion.qcfuse import QCFuse
from engine.fusion.reuse import DirectReuse
from engine.model.primer import Primer
from engine.runtime import Runtime
from engine.tuning.data import TuningSet
from engine.tuning.divergence import full_reference, kl_to_full
from engine.types import ChunkContext, FusionRequest

STORE_BYTES = 2**30
PRIMED: tuple[ChunkContext, ...] = ("primed", "primed-one")
MEAN: ChunkContext = "primed-mean"
ALL = "all"


class Cell(NamedTuple):
    """What is measured once per request: a method over chunks of a context; `primer` is "" behind the system part alone."""

    method: str
    context: str
    primer: str


class Trial(NamedTuple):
    """KL to full prefill, nats, by cell: one array [n] for each set, samples in the same order in all cells."""

    divergences: Mapping[Cell, tuple[np.ndarray, ...]]

    def mean_of(self, cell: Cell) -> float:
        """Returns the mean over sets of equal weight."""
        return float(np.mean([values.mean() for values in self.divergences[cell]]))

    def differences(self, cell: Cell, base: Cell) -> list[np.ndarray]:
        """Returns the paired differences of two cells, by set."""
        return [a - b for a, b in zip(self.divergences[cell], self.divergences[base], strict=True)]


@torch.inference_mode()
def run_trial(runtime: Runtime, sets: Sequence[TuningSet], primers: Sequence[Primer], ratio: float) -> Trial:
    """Returns the divergences of direct reuse and of QCFuse at a ratio: behind the system part, behind every primer, and of the mean.

    Raises BadRequest where no sample of a set fits the model.
    """
    bench = _Bench(runtime, primers, ratio)
    collected: dict[Cell, list[np.ndarray]] = {}
    for tuning in sets:
        rows = []
        for i, sample in enumerate(tuning.samples):
            request = FusionRequest(sample.question, sample.chunks, gold_answers=sample.answers, max_new_tokens=64)
            try:
                rows.append(bench.measure(request))
            except BadRequest as error:
                print(f"left out {sample.sample_id}: {error}", file=sys.stderr)
                continue
            print(f"{tuning.label}: {i + 1}/{len(tuning.samples)}", file=sys.stderr)
        if not rows:
            raise BadRequest(f"No sample of {tuning.label} fits the model's context; take shorter ones or lower --pad-to.")
        for cell in rows[0]:
            collected.setdefault(cell, []).append(np.array([row[cell] for row in rows]))
    return Trial({cell: tuple(values) for cell, values in collected.items()})


class _Bench:
    """One model with a runtime for every primer; the chunks behind primers stay in memory, for a while."""

    def __init__(self, runtime: Runtime, primers: Sequence[Primer], ratio: float) -> None:
        self._runtime = runtime
        self._methods: dict[str, FusionMethod] = {"reuse": DirectReuse(), f"qcfuse@{ratio:g}": QCFuse(ratio=ratio)}
        behind = {primer.name: _behind_system(runtime, primer.text) for primer in primers}
        self._primed = {name: self._runtime_with({"primed": (ids,)}) for name, ids in behind.items()}
        self._mean = self._runtime_with({MEAN: tuple(behind.values())})

    def measure(self, request: FusionRequest) -> dict[Cell, float]:
        """Returns the divergences of one request. Raises BadRequest."""
        prepared = self._runtime.prepare(request)
        reference = full_reference(self._runtime, prepared.prompt, request.gold_answers[0])
        found: dict[Cell, float] = {}

        def add(context: str, primer: str, placed: Sequence[Placed]) -> None:
            for name, method in self._methods.items():
                found[Cell(name, context, primer)] = kl_to_full(self._runtime, method, placed, reference)

        add("system", "", prepared.placed["system"])
        every = []
        for name, primed in self._primed.items():
            placed = primed.prepare(replace(request, chunk_context=PRIMED[0]), contexts=PRIMED).placed
            every.append(placed["primed"])
            for context in PRIMED:
                add(context, name, placed[context])
        add(MEAN, ALL, [self._mean_of(parts) for parts in zip(*every, strict=True)])
        return found

    def _runtime_with(self, prefixes: Mapping[str, Sequence[torch.Tensor]]) -> Runtime:
        made = Runtime(self._runtime.model, self._runtime.settings, ChunkStore(None, STORE_BYTES))
        system = _behind_system(self._runtime, "")
        # One token in place of the instruction behind a chunk: KVzip scores are not read here, and these chunks are not filed.
        made.source = ChunkSource(made.decoder, made.store, {"system": (system,), **prefixes}, system[-1:])
        return made

    def _mean_of(self, parts: Sequence[Placed]) -> Placed:
        """Returns the mean of a chunk's KV over the primers; what no primer stands before is the same in all parts."""
        first = parts[0]
        if first.chunk.key.context != "primed":
            return first
        key = self._mean.source.key(torch.tensor(first.chunk.key.token_ids), MEAN)
        stored = self._mean.store.get(key) or self._mean.store.put(key, *mean_kv(_read(part) for part in parts))
        return replace(first, chunk=stored)


def _read(placed: Placed) -> ChunkKV:
    chunk, key = placed.chunk, placed.chunk.key
    shape = (key.num_layers, key.num_tokens, key.num_kv_heads, key.head_dim)
    keys, values = torch.empty(shape, dtype=torch_dtype(key)), torch.empty(shape, dtype=torch_dtype(key))
    for layer in range(key.num_layers):
        chunk.read_keys(layer, keys[layer])
        chunk.read_values(layer, values[layer])
    return ChunkKV(keys, values, chunk.importance.clone())


def _behind_system(runtime: Runtime, text: str) -> torch.Tensor:
    """Returns int64 ids: the system part and a text behind it."""
    return torch.from_numpy(np.concatenate([runtime.prompts.system.ids, runtime.prompts.tokenize(text).ids]))
