"""A server that speaks the routes of SGLang with the plugin as the client uses them, without SGLang: its answers are made up."""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from fakes import FakeSession
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from launch import free_port
from worlds import tiny_runtime

from engine.outcomes import Outcomes
from engine.serving.sglang.metadata import FIELD, FusionMeta, read_meta
from engine.serving.sglang_lane import SGLangLane
from engine.turns import Turns
from engine.types import budget

TEXT = "It was Ilka Brandt."
VERSION = "0.5.23"
PLUGIN = {
    "hindrance": None,
    "revision": "seed-0",
    "weights": "random weights, seed 0",
    "num_layers": 4,
    "dtype": "float32",
    "device": "CPU, AVX512",
    "num_threads": 1,
    "kernels": "torch",
    "critical_layers": [2],
    "calibration": "measured",
    "calibration_note": "",
}


@dataclass
class FakeSGLang:
    """Args:
    model: what it says it serves.
    fusion: what the plugin says of itself beside that; None for a server without the plugin.
    tells_times: as if started with --enable-metrics.
    num_pieces: after how many of an answer's pieces the connection breaks; None for never.
    silence: set, it takes requests and says nothing until it is cleared.
    seen: the requests that it was sent.
    """

    model: str = "tiny-llama"
    fusion: dict[str, Any] | None = field(default_factory=lambda: dict(PLUGIN))
    tells_times: bool = True
    num_pieces: int | None = None
    silence: threading.Event = field(default_factory=threading.Event)
    seen: list[dict[str, Any]] = field(default_factory=list)
    cached: dict[str | None, set[str]] = field(default_factory=dict)

    def app(self) -> FastAPI:
        """Returns its routes."""
        app = FastAPI()
        app.get("/server_info")(self.info)
        app.post("/generate")(self.generate)
        return app

    def info(self) -> dict[str, Any]:
        """Returns what SGLang tells of itself, as far as the client reads it."""
        plugin = {} if self.fusion is None else {"fusescope": {"policy": None, "fusion": self.fusion | {"model": self.model}}}
        known = {"tokenizer_path": "nowhere", "version": VERSION, "attention_backend": "qcfuse", "radix_eviction_policy": "saecache"}
        return known | {"context_length": 65_536, "internal_states": [plugin]}

    def generate(self, body: dict[str, Any]) -> StreamingResponse:
        """Streams the made-up answer."""
        self.seen.append(body)
        return StreamingResponse(self._pieces(body), media_type="text/event-stream")

    def _pieces(self, body: dict[str, Any]) -> Iterator[str]:
        while self.silence.is_set():
            time.sleep(0.02)
        ids, params = body["input_ids"], body["sampling_params"]
        fusion = read_meta(params.get("custom_params")).fusion
        known, key = self.cached.setdefault(body.get("cache_salt"), set()), json.dumps(ids)
        meta: dict[str, Any] = {"cached_tokens": len(ids) - 1 if key in known else 0, "finish_reason": None}
        known |= set() if fusion else {key}
        meta |= {FIELD: [outcome(fusion, len(ids))]} if fusion else {}
        words = TEXT.split()[: params["max_new_tokens"]]
        for i in range(1, len(words) + 1):
            if i - 1 == self.num_pieces:
                raise ConnectionAbortedError("as a worker that was killed")
            if i == len(words):
                times = {"first_token_latency": 0.004, "forward_entry_time": 100.0, "prefill_finished_time": 100.003}
                meta |= {"finish_reason": {"type": "length", "length": i}} | (times if self.tells_times else {})
            piece = {"text": " ".join(words[:i]), "output_ids": list(range(7, 7 + i)), "meta_info": meta}
            yield f"data: {json.dumps(piece)}\n\n"
        yield "data: [DONE]\n\n"


def outcome(fusion: FusionMeta, num_tokens: int) -> dict[str, Any]:
    """Returns what the plugin would tell of a fused request that recomputes the first document tokens."""
    (start, _), (_, stop) = fusion.chunks[0], fusion.chunks[-1]
    num = budget(float(fusion.params.get("ratio", 0.0)), stop - start)
    rows = [*range(start, start + num), *range(stop, num_tokens)]
    chunks = [[f"{i:012x}", "disk", 1000, 0.01] for i in range(len(fusion.chunks))]
    told = {"fused": True, "num_rows": len(rows), "rows": rows, "critical_layers": [2], "recomputed_tokens": num, "cached_prefix": 0}
    return told | {"chunks": chunks, "loaded_bytes": 4000, "chunks_s": 0.0005, "select_s": 0.001, "forward_s": 0.002, "batch_size": 1}


def started(app: FastAPI) -> tuple[str, Callable[[], None]]:
    """Serves an app in a thread until the process ends; returns its address, and what stops it before."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)

    def stop() -> None:
        server.should_exit = True
        thread.join(10)

    return f"http://127.0.0.1:{port}", stop


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """Serves an app and yields its address."""
    url, stop = started(app)
    try:
        yield url
    finally:
        stop()


def lane(url: str, ready: Callable[[], Any], timeout_s: float = 0.0) -> SGLangLane:
    """Returns a lane to a server with turns of its own."""
    return SGLangLane(url, Turns(), Outcomes(), ready, timeout_s)


def page_session() -> FakeSession:
    """Returns a session of made-up runs whose lane is a real one, to a server of made-up answers in this process."""
    url, _ = started(FakeSGLang().app())
    runtime = tiny_runtime(Path(tempfile.mkdtemp(prefix="fusescope-lane-")))
    return FakeSession(sglang=lane(url, lambda: runtime))
