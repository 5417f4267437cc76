"""Finds the folder of a model by name: a local path, or a Hugging Face id that is fetched. Knows files, not tensors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.errors import ModelUnavailable
from engine.model.families import find_family
from engine.model.rope import rope_spec

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# Top-level files only: repositories often hold the same weights again in other formats.
_SMALL_FILES = ("*.json", "*.model", "*.txt", "*.jinja")
_SAFE_WEIGHTS = "model*.safetensors"
_PICKLED_WEIGHTS = "pytorch_model*.bin"
_FLOATS = ("F64", "F32", "F16", "BF16")
_CONNECT_TIMEOUT_S = 5


class ModelConfig(NamedTuple):
    """A supported architecture and its config."""

    architecture: str
    config: PreTrainedConfig


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A folder whose config.json names a supported architecture, and what the provenance says about it."""

    folder: Path
    name: str
    revision: str
    weights_note: str


def find_source(name: str) -> ModelSource:
    """Returns the checked folder of a local path or a hub id; the latter is downloaded where it is not in the hub's cache.

    Raises ModelUnavailable, and before large files are fetched where the config already says that the model is not supported.
    """
    path = Path(name).expanduser()
    if _exists(path):
        read_config(path)
        _check_weights(path)
        return ModelSource(path, name, _stamp(path), f"local files of {name}")
    if name.startswith((".", "/", "~")) or path.is_absolute() or name.count("/") > 1:
        raise ModelUnavailable(
            f"There is no model folder {name!r}; give an existing folder or a Hugging Face id such as 'Qwen/Qwen3-0.6B'."
        )
    return _fetch(name)


def read_config(folder: Path) -> ModelConfig:
    """Returns the config of a folder. Raises ModelUnavailable where it is missing, broken or asks for what is not supported."""
    from transformers import AutoConfig

    if not folder.is_dir():
        raise ModelUnavailable(f"{str(folder)!r} is a file; give the folder that holds config.json, the tokenizer and *.safetensors.")
    file = folder / "config.json"
    if not file.is_file():
        if any(folder.glob("*.gguf")):
            raise ModelUnavailable(f"{str(folder)!r} holds only GGUF files, which are not read; take the model's safetensors version.")
        raise ModelUnavailable(f"{str(folder)!r} has no config.json; give a folder in the layout of transformers' save_pretrained.")
    plain = _read_json(file)
    if plain.get("quantization_config"):
        raise ModelUnavailable(f"The checkpoint in {str(folder)!r} is quantised (quantization_config); take its float version.")
    architecture = _architecture(plain)
    family = find_family(architecture)
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        family.check(config)
        rope_spec(config)
    except loading_errors() as error:
        raise ModelUnavailable(f"{str(file)!r} is not a valid config ({first_line(error)}); check or fetch it again.") from error
    return ModelConfig(architecture, config)


def loading_errors() -> tuple[type[Exception], ...]:
    """Returns what transformers raises for files that are broken, don't fit together or need a package that is not here."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    of_files = (OSError, EOFError, SafetensorError, ImportError)
    of_values = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, RuntimeError, StrictDataclassError)
    return (*of_files, *of_values)


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's text, short enough for a sentence; its type where it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _check_weights(folder: Path) -> None:
    if files := _weight_files(folder):
        for file in files:
            _check_types(file)
        return
    if any(folder.glob("*.gguf")):
        raise ModelUnavailable(f"{str(folder)!r} has its weights only as GGUF, which is not read; take the model's safetensors version.")
    if any(folder.glob(_PICKLED_WEIGHTS)):
        raise ModelUnavailable(
            f"{str(folder)!r} has its weights only as pickled files, which can run code when they are read; take the model's safetensors "
            "version, or convert it."
        )
    raise ModelUnavailable(f"{str(folder)!r} has no weights; it must hold {_SAFE_WEIGHTS}.")


def _check_types(file: Path) -> None:
    """Raises ModelUnavailable where weights are stored as anything but floats: scaled integers and 8-bit floats would be read as
    they stand, without their scales, where config.json does not say that they are quantised."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as opened:
            names = [name for name in opened.keys() if name.endswith(".weight")]  # noqa: SIM118, it is no mapping
            types = {name: opened.get_slice(name).get_dtype() for name in names}
    except (OSError, SafetensorError):
        # Whoever loads it says what is wrong with it.
        return
    for name, kind in types.items():
        if kind not in _FLOATS:
            raise ModelUnavailable(f"The checkpoint {str(file)!r} is quantised ({name} is of the type {kind}); take its float version.")


def _read_json(file: Path) -> dict[str, Any]:
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"{str(file)!r} can't be read as JSON ({error}); fetch the model again.") from error
    if not isinstance(config, dict):
        raise ModelUnavailable(f"{str(file)!r} is not a JSON object; fetch the model again.")
    return config


def _architecture(config: dict[str, Any]) -> str:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    named = config.get("architectures") or [MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(str(config.get("model_type")), config.get("model_type"))]
    return str(named[0])


def _fetch(name: str) -> ModelSource:
    read_config(_snapshot(name, ["config.json"]))
    folder = _snapshot(name, [*_SMALL_FILES, _SAFE_WEIGHTS])
    _check_weights(folder)
    # The hub's cache names a snapshot's folder by its commit.
    return ModelSource(folder, name, folder.name, f"hub {name}@{folder.name[:8]}")


def _snapshot(name: str, patterns: Sequence[str]) -> Path:
    """Returns the local folder of the repository's files that match. Offline, it is the one in the hub's cache."""
    from httpx import HTTPError
    from huggingface_hub import errors, snapshot_download

    try:
        folder = snapshot_download(name, allow_patterns=list(patterns), ignore_patterns=["*/*"], etag_timeout=_CONNECT_TIMEOUT_S)
    except errors.HFValidationError:
        reason = "is neither a folder here nor a valid Hugging Face id; an id reads 'owner/model'"
    except errors.GatedRepoError:
        reason = "is gated on Hugging Face; accept its terms there and set HF_TOKEN"
    except errors.RepositoryNotFoundError:
        reason = "is neither a folder here nor a model on Hugging Face; check the spelling, and set HF_TOKEN if it is private"
    except errors.LocalEntryNotFoundError:
        reason = "is not on this machine and Hugging Face can't be reached; go online, or give a local folder or 'bundled'"
    except (OSError, HTTPError) as error:
        reason = f"could not be fetched from Hugging Face ({first_line(error)}); try again, or give a local folder"
    else:
        return Path(folder)
    raise ModelUnavailable(f"The model {name!r} {reason}.")


def _weight_files(folder: Path) -> list[Path]:
    return sorted(folder.glob(_SAFE_WEIGHTS))


def _stamp(folder: Path) -> str:
    """Returns a revision for local files: names, sizes and times of change, since reading all of a large model takes minutes."""
    digest = hashlib.blake2b((folder / "config.json").read_bytes(), digest_size=16)
    for file in _weight_files(folder):
        status = file.stat()
        digest.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        # Longer than a path can be.
        return False
