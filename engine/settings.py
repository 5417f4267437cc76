"""Settings of one process, read once from the environment; never changed afterwards."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from engine.errors import BadRequest
from engine.library.limits import LibraryLimits
from engine.protection import Protection
from engine.space import with_space_defaults

MIB, GIB = 2**20, 2**30


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things are and what runs them.

    Args:
        model: Hugging Face id or local path; "bundled" is SmolLM2-135M-Instruct.
        device: "auto", "cpu" or "cuda".
        kernels: "auto", "torch" or "triton".
        products: what multiplies on a CPU: "auto" (timed), "torch" or "onednn"; read by `kernels.products` itself.
        cache_dir: folder of converted weights, chunk caches and calibration tables.
        chunk_capacity_bytes: bound of the chunk store on disk (and of its memory fallback).
        prefix_bytes: of the conversations' prefix cache, taken with the first turn.
        num_threads: CPU threads of the compute library; 0 takes the physical cores seen.
        page_cache: "kept"; "dropped" before every timed prefill, so that chunks come from the disk itself; or "direct", where
            every read passes it by.
        sglang_url: address of a running SGLang server that requests may be sent to as well; "" for none.
        embedder: sentence-embedding model for dense retrieval, see `engine.library.embedder`; "" leaves search to words.
        protection: who may come in, and how much each may ask.
        library: what may be uploaded, and how texts are cut.
    """

    model: str = "bundled"
    device: str = "auto"
    kernels: str = "auto"
    products: str = "auto"
    cache_dir: Path = Path("~/.cache/fusescope")
    chunk_capacity_bytes: int = 2 * GIB
    prefix_bytes: int = 256 * MIB
    num_threads: int = 0
    page_cache: str = "kept"
    embedder: str = ""
    sglang_url: str = ""
    host: str = "127.0.0.1"
    port: int = 7860
    protection: Protection = field(default_factory=Protection)
    library: LibraryLimits = field(default_factory=LibraryLimits)

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> "Settings":
        """Returns settings from FUSESCOPE_MODEL, _DEVICE, _KERNELS, _PRODUCTS, _CACHE, _CHUNK_GIB, _PREFIX_MIB,
        _THREADS, _PAGE_CACHE, _EMBEDDER, _SGLANG_URL, HOST, PORT, and those of `read_protection` and `read_library_limits`.

        Raises BadRequest naming the variable, its value and the rule.
        """
        env = with_space_defaults(os.environ if env is None else env)
        base = cls()
        return cls(
            model=env.get("FUSESCOPE_MODEL") or base.model,
            device=_choice(env, "FUSESCOPE_DEVICE", ("auto", "cpu", "cuda")),
            kernels=_choice(env, "FUSESCOPE_KERNELS", ("auto", "torch", "triton")),
            products=_choice(env, "FUSESCOPE_PRODUCTS", ("auto", "torch", "onednn")),
            cache_dir=Path(env.get("FUSESCOPE_CACHE") or base.cache_dir).expanduser(),
            chunk_capacity_bytes=int(_number(env, "FUSESCOPE_CHUNK_GIB", base.chunk_capacity_bytes / GIB, 0.01, 1e6) * GIB),
            prefix_bytes=int(_number(env, "FUSESCOPE_PREFIX_MIB", base.prefix_bytes / MIB, 1, 1e6) * MIB),
            num_threads=int(_number(env, "FUSESCOPE_THREADS", 0, 0, 1024)),
            page_cache=_choice(env, "FUSESCOPE_PAGE_CACHE", ("kept", "dropped", "direct")),
            embedder=(env.get("FUSESCOPE_EMBEDDER") or base.embedder).strip(),
            sglang_url=_address(env, "FUSESCOPE_SGLANG_URL"),
            host=env.get("HOST") or base.host,
            port=int(_number(env, "PORT", base.port, 0, 65535)),
            protection=read_protection(env),
            library=read_library_limits(env),
        )


def read_protection(env: Mapping[str, str]) -> Protection:
    """Returns the limits from FUSESCOPE_PUBLIC, _MODELS, _PASSWORD, _REQUESTS_PER_MINUTE, _TOKENS_PER_HOUR, _UPLOAD_MIB_PER_HOUR,
    _MAX_WAITING, _MAX_REQUEST_MIB, _TIMEOUT_S, _REPLAY_S. Raises BadRequest."""
    base = Protection.for_public() if _choice(env, "FUSESCOPE_PUBLIC", ("0", "1")) == "1" else Protection()

    def whole(name: str, default: float, low: int, high: int) -> int:
        return int(_number(env, f"FUSESCOPE_{name}", default, low, high))

    return Protection(
        public=base.public,
        models=tuple(name.strip() for name in env.get("FUSESCOPE_MODELS", "").split(",") if name.strip()),
        password=env.get("FUSESCOPE_PASSWORD") or "",
        requests_per_minute=whole("REQUESTS_PER_MINUTE", base.requests_per_minute, 0, 100_000),
        tokens_per_hour=whole("TOKENS_PER_HOUR", base.tokens_per_hour, 0, 10**9),
        upload_mib_per_hour=whole("UPLOAD_MIB_PER_HOUR", base.upload_mib_per_hour, 0, 10**6),
        max_waiting=whole("MAX_WAITING", base.max_waiting, 1, 10_000),
        max_request_mib=whole("MAX_REQUEST_MIB", base.max_request_mib, 1, 1024),
        timeout_s=_number(env, "FUSESCOPE_TIMEOUT_S", base.timeout_s, 0, 86_400),
        replay_s=_number(env, "FUSESCOPE_REPLAY_S", base.replay_s, 0, 86_400),
    )


def read_library_limits(env: Mapping[str, str]) -> LibraryLimits:
    """Returns the limits from FUSESCOPE_FILE_MIB, _FILE_PAGES, _FILE_ROWS, _FILE_CHARS, _UNPACKED_MIB, _OWNER_MIB, _OWNER_DOCUMENTS,
    _OWNER_LIBRARIES, _OWNER_HOURS, _PARSE_S, _PARSE_MIB, _CHUNK_TOKENS, _OVERLAP_SENTENCES. Raises BadRequest."""
    base = LibraryLimits()

    def whole(name: str, default: float, low: int, high: int, unit: int = 1) -> int:
        return int(_number(env, f"FUSESCOPE_{name}", default / unit, low, high) * unit)

    return LibraryLimits(
        file_bytes=whole("FILE_MIB", base.file_bytes, 1, 1024, MIB),
        num_pages=whole("FILE_PAGES", base.num_pages, 1, 100_000),
        num_rows=whole("FILE_ROWS", base.num_rows, 1, 10_000_000),
        num_chars=whole("FILE_CHARS", base.num_chars, 1_000, 10**9),
        unpacked_bytes=whole("UNPACKED_MIB", base.unpacked_bytes, 1, 10_000, MIB),
        owner_bytes=whole("OWNER_MIB", base.owner_bytes, 1, 10**6, MIB),
        owner_documents=whole("OWNER_DOCUMENTS", base.owner_documents, 1, 10**6),
        owner_libraries=whole("OWNER_LIBRARIES", base.owner_libraries, 1, 10**6),
        owner_hours=_number(env, "FUSESCOPE_OWNER_HOURS", base.owner_hours, 0.01, 1e6),
        parse_time_s=_number(env, "FUSESCOPE_PARSE_S", base.parse_time_s, 1, 86_400),
        parse_memory_bytes=whole("PARSE_MIB", base.parse_memory_bytes, 128, 10**6, MIB),
        chunk_tokens=whole("CHUNK_TOKENS", base.chunk_tokens, 16, 1024),
        overlap_sentences=whole("OVERLAP_SENTENCES", base.overlap_sentences, 0, 8),
    )


def _choice(env: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = env.get(name) or allowed[0]
    if value not in allowed:
        raise BadRequest(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")
    return value


def _address(env: Mapping[str, str], name: str) -> str:
    """Returns an address without the slash at its end, "" where none is given. What is shown of it may be shown to everyone."""
    text = (env.get(name) or "").strip().rstrip("/")
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if text and not valid:
        raise BadRequest(f"{name} is {text!r}; it must be the address of a server, such as http://127.0.0.1:30000.")
    if text and parts.username is not None:
        raise BadRequest(f"{name} holds a name or password, which the page would show; give the address alone, such as http://host:30000.")
    return text


def _number(env: Mapping[str, str], name: str, default: float, low: float, high: float) -> float:
    text = env.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        raise BadRequest(f"{name} is {text!r}; it must be a number from {low:g} to {high:g}.") from None
    if not low <= value <= high:
        raise BadRequest(f"{name} is {text}; it must be from {low:g} to {high:g}.")
    return value
