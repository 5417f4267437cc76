"""A model of Llama-3.1-8B's shape with random weights, and a request over random stored chunks: enough to take times with.

What it answers means nothing; what it computes, reads and writes is what the real model would.
"""

import numpy as np
import torch
from shapes import LLAMA_8B, Shape
from torch import Tensor

from engine.chunks.file import StoredChunk, hold_chunk
from engine.chunks.key import ChunkKey
from engine.chunks.layout import ChunkTensors
from engine.chunks.prefetch import Placed
from engine.model.loader import LoadedModel
from engine.model.prompt import Prompt
from engine.model.spec import ModelSpec, RopeSpec
from engine.model.weights import DecoderWeights, LayerWeights
from kernels.linear import Linear


def random_model(shape: Shape, device: torch.device, dtype: torch.dtype) -> LoadedModel:
    """Returns the model, its weights drawn on the device."""
    generator = torch.Generator(device).manual_seed(0)

    def linear(rows: int, columns: int) -> Linear:
        return Linear(torch.randn(rows, columns, generator=generator, device=device, dtype=dtype).mul_(0.02))

    ones = torch.ones(shape.hidden, device=device, dtype=dtype)
    width, kv_width = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    layers = tuple(
        LayerWeights(
            ones,
            linear(width, shape.hidden),
            linear(2 * kv_width, shape.hidden),
            None,
            None,
            linear(shape.hidden, width),
            ones,
            linear(2 * shape.inner, shape.hidden),
            linear(shape.hidden, shape.inner),
        )
        for _ in range(shape.num_layers)
    )
    embedding = torch.randn(shape.vocabulary, shape.hidden, generator=generator, device=device, dtype=dtype)
    spec = ModelSpec(
        name="random weights, Llama-3.1-8B's shape" if shape is LLAMA_8B else "random weights, tiny",
        revision="seed 0",
        weights="random",
        architecture="LlamaForCausalLM",
        num_layers=shape.num_layers,
        hidden_size=shape.hidden,
        num_heads=shape.num_heads,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        vocab_size=shape.vocabulary,
        max_context=131_072,
        norm_eps=1e-5,
        rope=RopeSpec("default", tuple((500_000.0 ** (-torch.arange(0, shape.head_dim, 2) / shape.head_dim)).tolist())),
        dtype=str(dtype).removeprefix("torch."),
        eos_token_ids=(),
    )
    weights = DecoderWeights(embedding, layers, ones, linear(shape.vocabulary, shape.hidden))
    return LoadedModel(spec, weights, None, device, dtype)  # type: ignore[arg-type]


def random_request(model: LoadedModel, shape: Shape, num_context: int, num_question: int = 64) -> tuple[Prompt, list[Placed]]:
    """Returns a prompt of about `num_context` document tokens in chunks, and their random KV in host memory."""
    count = max(1, num_context // shape.chunk_tokens)
    system_len = shape.chunk_tokens // 8
    spans = tuple((system_len + i * shape.chunk_tokens, system_len + (i + 1) * shape.chunk_tokens) for i in range(count))
    start = spans[-1][1]
    total = start + num_question
    ids = np.random.default_rng(0).integers(0, shape.vocabulary, total)
    prompt = Prompt(ids, ("",) * total, system_len, spans, start, (start + num_question // 4, total - num_question // 4))
    kv = torch.randn(
        2, shape.num_layers, shape.chunk_tokens, shape.num_kv_heads, shape.head_dim, device=model.device, dtype=model.dtype
    ).cpu()
    placed = [
        Placed(_chunk(model, kv[:, :, : stop - first].contiguous(), ids[first:stop], i), first, stop, is_exact=i == 0)
        for i, (first, stop) in enumerate(((0, system_len), *spans))
    ]
    return prompt, placed


def _chunk(model: LoadedModel, kv: Tensor, ids: np.ndarray, index: int) -> StoredChunk:
    spec = model.spec
    key = ChunkKey(
        spec.name,
        spec.revision,
        spec.dtype,
        f"random {index}",
        "alone",
        (),
        tuple(ids.tolist()),
        spec.num_layers,
        spec.num_kv_heads,
        spec.head_dim,
    )
    norms = kv[0].float().norm(dim=-1).mean(dim=-1)
    return hold_chunk(key, ChunkTensors(kv[0], kv[1], torch.stack([norms, norms])))
