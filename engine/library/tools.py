"""What the library has to ask others for: tokens, the model in use, the files of stored KV, vectors of texts."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np


class TextEmbedder(Protocol):
    """A sentence-embedding model."""

    name: str

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Returns unit vectors, float32 [n, d]. Raises ModelUnavailable."""


class KvFiles:
    """The files of stored KV in the chunk store's folder, by hash, without loading what reads them.

    Args:
        folder: the store's folder; None where KV is kept in memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def has(self, kv_hash: str) -> bool:
        """Returns whether the file is there."""
        return self._folder is not None and os.path.exists(self._path(self._folder, kv_hash))

    def drop(self, hashes: Iterable[str]) -> None:
        """Removes files; one that cannot be removed is left for the store's eviction. Requests that read one keep it open."""
        for kv_hash in hashes:
            if self._folder is not None:
                try:
                    os.unlink(self._path(self._folder, kv_hash))
                except OSError:
                    continue

    @staticmethod
    def _path(folder: Path, kv_hash: str) -> Path:
        return folder / f"{kv_hash}.safetensors"


def count_words(text: str) -> int:
    """Returns a guess at the number of tokens, for use without a model: one for every four bytes, and at least one."""
    return max(1, len(text.encode()) // 4)


@dataclass(frozen=True, slots=True)
class LibraryTools:
    """What the library has to ask others for.

    Args:
        count_tokens: number of tokens of a text by the model's tokenizer.
        kv_model: name of the model in use with all that stored KV depends on, "" where none is loaded yet.
        kv_files: where stored KV lies.
        embedder: for dense retrieval; None leaves search to words.
    """

    count_tokens: Callable[[str], int] = count_words
    kv_model: Callable[[], str] = lambda: ""
    kv_files: KvFiles = field(default_factory=KvFiles)
    embedder: TextEmbedder | None = None
