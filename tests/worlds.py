"""Small ready-made worlds for tests: a tiny runtime and requests about a lighthouse."""

from pathlib import Path

import msgspec

from engine.model.calibration import calibration_path
from engine.model.head_weights import HeadWeights
from engine.model.tiny import tiny_model
from engine.runtime import Runtime
from engine.settings import Settings
from engine.types import Chunk, FusionRequest

TEXTS = (
    "The lamp of Merrow Point was lit in 1871 by Ada Quill.",
    "Ferry times: 7, 9 and 12. No ferry runs on the feast of St. Orrin.",
    "Ada Quill was born in Vell, a village of forty houses.",
    "The museum closes at five.",
)


def tiny_runtime(folder: Path, family: str = "llama", page_cache: str = "kept") -> Runtime:
    """Returns a runtime of a tiny model on one thread, its chunk store in `folder`, with made-up head weights."""
    model = tiny_model(family)
    weights = tuple(tuple(1.0 + layer + head for head in range(model.spec.num_heads)) for layer in (1, 3))
    path = calibration_path(folder / "head_weights", model.spec.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(HeadWeights(model.spec.name, (1, 3), weights, "made up", "", 0)))
    return Runtime(model, Settings(cache_dir=folder, num_threads=1, page_cache=page_cache))


def lighthouse(texts=TEXTS, ratio=0.35, context="system", **more) -> FusionRequest:
    """Returns a request over the given texts."""
    chunks = tuple(Chunk(f"c{i}", f"Note {i}", text) for i, text in enumerate(texts))
    return FusionRequest("Where was the lamp lighter born?", chunks, ratio=ratio, chunk_context=context, **more)
