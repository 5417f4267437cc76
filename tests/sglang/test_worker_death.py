"""A server that loses its worker says so; the client turns it into one sentence."""

import os
import signal

import psutil
import pytest

from engine.errors import BackendUnavailable
from engine.serving.sglang_answer import Asked
from engine.serving.sglang_server import SGLangServer


def test_a_killed_worker_gives_a_clear_error(running):
    server = running.small_cache().server
    client = SGLangServer(server.url, timeout_s=60.0)
    assert client.policy() is not None
    workers = [child for child in psutil.Process(server.process.pid).children(recursive=True) if "scheduler" in " ".join(child.cmdline())]
    assert workers, "the scheduler runs in a process of its own"
    for worker in workers:
        os.kill(worker.pid, signal.SIGKILL)
    server.process.wait(60)
    with pytest.raises(BackendUnavailable, match=r"does not answer .* start it again, or unset FUSESCOPE_SGLANG_URL"):
        client.stream(Asked([10, 11, 12], 4))
    client.close()
