"""Puts the same request to the engine on a tiny model and, as plain numbers, to the written-out rules."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from rules import Case
from torch import Tensor
from transformers import PreTrainedModel
from worlds import tiny_runtime

from engine.chunks.prefetch import Placed
from engine.fusion.base import FusionMethod
from engine.fusion.pipeline import FusionPipeline
from engine.fusion.plan import FusionPlan
from engine.model.cache import RequestCache
from engine.model.prompt import Prompt
from engine.model.tiny import tiny_hf_model
from engine.runtime import Runtime
from engine.types import FusionRequest

FAMILIES = ("llama", "qwen3")
PRIMERS = Path(__file__).resolve().parents[2] / "assets" / "primers"
INSTRUCTION = "Repeat the previous context exactly."


@dataclass(frozen=True, eq=False)
class World:
    """A tiny model behind a runtime, and its transformers twin with eager attention; `cases` keeps what that has computed."""

    runtime: Runtime
    hf: PreTrainedModel
    cases: dict[tuple, Case] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Done:
    """What the engine made of a request by one method, and the request as the written-out rules get it."""

    plan: FusionPlan
    logits: Tensor
    cache: RequestCache
    prompt: Prompt
    placed: tuple[Placed, ...]
    case: Case

    @property
    def chosen(self) -> list[int]:
        """Returns the document positions among the rows."""
        return [row for row in self.plan.rows.tolist() if row < self.prompt.question_start]

    @property
    def keys(self) -> Tensor:
        return self.cache.keys[:, : self.prompt.num_tokens]

    @property
    def values(self) -> Tensor:
        return self.cache.values[:, : self.prompt.num_tokens]


def make_world(folder: Path, family: str) -> World:
    """Returns the world of a tiny model, its chunk store in `folder`."""
    hf = tiny_hf_model(family)
    hf.set_attn_implementation("eager")
    return World(tiny_runtime(folder, family), hf)


def run(world: World, method: FusionMethod, request: FusionRequest, critical_layers: tuple[int, ...] = (2,)) -> Done:
    """Returns what a method does with a request, on a cache full of NaN beforehand."""
    runtime, context = world.runtime, method.chunk_context or request.chunk_context
    prepared = runtime.prepare(request, contexts=(context,))
    prompt, placed = prepared.prompt, prepared.placed[context]
    cache = RequestCache(runtime.model.spec, prompt.num_tokens + 16, torch.float32, torch.device("cpu"))
    cache.keys.fill_(float("nan"))
    cache.values.fill_(float("nan"))
    pipeline = FusionPipeline(runtime.decoder, runtime.anchors, critical_layers, head_weights=runtime.pipeline.head_weights)
    result = pipeline.prefill(method, prompt, placed, cache)
    return Done(result.plan, result.logits, cache, prompt, placed, _case(world, prompt, context))


def _case(world: World, prompt: Prompt, context: str) -> Case:
    ids, name = torch.from_numpy(prompt.ids), (tuple(prompt.ids.tolist()), context)
    if name not in world.cases:
        prefixes = [_prefixes(context, i, ids[: prompt.system_len]) for i in range(len(prompt.chunk_spans))]
        layout = (prompt.system_len, prompt.chunk_spans, prompt.question_start, prompt.question_span)
        world.cases[name] = Case(world.hf, ids, *layout, prefixes, _as_bytes(INSTRUCTION))
    return world.cases[name]


def _as_bytes(text: str) -> Tensor:
    """Returns the ids of a text: in the tiny models a token is a byte."""
    return torch.tensor(list(text.encode()), dtype=torch.int64)


def _prefixes(context: str, index: int, system: Tensor) -> list[Tensor]:
    """Returns what the chunk at a place of a request is computed behind, several where it is the mean behind each."""
    if context == "alone":
        return [system[:0]]
    if context == "system" or (context in ("primed", "primed-mean") and index == 0):
        return [system]
    chosen = json.loads((PRIMERS / "choice.json").read_text())["chosen"]
    paths = PRIMERS.glob("*.txt") if context == "primed-mean" else [PRIMERS / f"{chosen}.txt"]
    return [torch.cat([system, _as_bytes(path.read_text(encoding="utf-8"))]) for path in paths]
