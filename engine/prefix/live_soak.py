"""Keeps a prefix server busy for a long time and watches the process's memory."""

import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.prefix.blocks import TokenType
from engine.prefix.roles import typed
from engine.prefix.serve import PrefixServer
from engine.prefix.serve_types import ServeRequest

NUM_MOMENTS, SETTLED = 10, 4
NUM_TEMPLATES, TEMPLATE_TOKENS, MOST_OWN_TOKENS = 3, 16, 70
_STATM = Path("/proc/self/statm")


def soak(server: PrefixServer, num_requests: int, seed: int) -> list[int]:
    """Serves random prompts behind a few shared beginnings; returns the resident bytes at ten moments, evenly spread."""
    rng, resident = np.random.default_rng(seed), []
    most = server.decoder.spec.vocab_size
    shared = [typed(rng.integers(0, most, TEMPLATE_TOKENS), TokenType.SYSTEM) for _ in range(NUM_TEMPLATES)]
    moments = set(np.linspace(0, num_requests, NUM_MOMENTS + 1).round().astype(int).tolist()[1:])
    for i in range(num_requests):
        own = typed(rng.integers(0, most, int(rng.integers(1, MOST_OWN_TOKENS))), TokenType.USER)
        request = ServeRequest(shared[int(rng.integers(NUM_TEMPLATES))] + own, time_s=float(i), session=i)
        with server.prefill(request, answer_room=0) as running:
            server.finish(running)
        if i + 1 in moments:
            resident.append(resident_bytes())
    return resident


def growth_bytes(resident: Sequence[int]) -> int:
    """Returns by how much memory grew over the second half; in the first, allocators fill their stores."""
    return resident[-1] - resident[min(SETTLED, len(resident) - 1)]


def resident_bytes() -> int:
    """Returns the process's resident memory; its peak where the system does not tell more."""
    if _STATM.is_file():
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
