"""Small ready-made worlds for tests: a tiny runtime and requests about a lighthouse."""

from pathlib import Path

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


def tiny_runtime(folder: Path, family: str = "llama") -> Runtime:
    """Returns a runtime of a tiny model on one thread, its chunk store in `folder`."""
    return Runtime(tiny_model(family), Settings(cache_dir=folder, num_threads=1))


def lighthouse(texts=TEXTS, ratio=0.35, context="system", **more) -> FusionRequest:
    """Returns a request over the given texts."""
    chunks = tuple(Chunk(f"c{i}", f"Note {i}", text) for i, text in enumerate(texts))
    return FusionRequest("Where was the lamp lighter born?", chunks, ratio=ratio, chunk_context=context, **more)
