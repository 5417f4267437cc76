"""Settings of one process, read once from the environment; never changed afterwards."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import BadRequest

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things are and what runs them.

    Args:
        model: Hugging Face id or local path; "bundled" is SmolLM2-135M-Instruct.
        device: "auto", "cpu" or "cuda".
        kernels: "auto", "torch" or "triton".
        cache_dir: folder of converted weights, chunk caches and calibration tables.
        chunk_capacity_bytes: bound of the chunk store on disk (and of its memory fallback).
        num_threads: CPU threads of the compute library; 0 takes the physical cores seen.
    """

    model: str = "bundled"
    device: str = "auto"
    kernels: str = "auto"
    cache_dir: Path = Path("~/.cache/fusescope")
    chunk_capacity_bytes: int = 2 * GIB
    num_threads: int = 0
    host: str = "127.0.0.1"
    port: int = 7860

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> "Settings":
        """Returns settings from FUSESCOPE_MODEL, _DEVICE, _KERNELS, _CACHE, _CHUNK_GIB, _THREADS, and HOST, PORT.

        Raises BadRequest naming the variable, its value and the rule.
        """
        env = os.environ if env is None else env
        base = cls()
        return cls(
            model=env.get("FUSESCOPE_MODEL") or base.model,
            device=_choice(env, "FUSESCOPE_DEVICE", ("auto", "cpu", "cuda")),
            kernels=_choice(env, "FUSESCOPE_KERNELS", ("auto", "torch", "triton")),
            cache_dir=Path(env.get("FUSESCOPE_CACHE") or base.cache_dir).expanduser(),
            chunk_capacity_bytes=int(_number(env, "FUSESCOPE_CHUNK_GIB", base.chunk_capacity_bytes / GIB, 0.01, 1e6) * GIB),
            num_threads=int(_number(env, "FUSESCOPE_THREADS", 0, 0, 1024)),
            host=env.get("HOST") or base.host,
            port=int(_number(env, "PORT", base.port, 0, 65535)),
        )


def _choice(env: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = env.get(name) or allowed[0]
    if value not in allowed:
        raise BadRequest(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")
    return value


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
