"""Turns of conversations without a model, and the real library with KV that a thread pretends to compute."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from fake_runs import PROVENANCE, fake_run, split_tokens

from engine.chat.types import ChatParts, ChatRequest, ChatStatus, ChatToken, ChatTurn, Citation, PrefixStats, SourceSpan
from engine.errors import Cancelled, EngineError
from engine.library.library import Library
from engine.library.tools import KvFiles, LibraryTools
from engine.types import FusionRequest, budget

BLOCK_TOKENS, SYSTEM_TOKENS, MODEL = 16, 32, "fake"
ANSWER = "The notes say that {question} is answered on the first page, as every visitor knows."
QUEUES, KINDS = {"structural": 3, "chat": 9}, {"system": 3, "user": 9}
STATS = PrefixStats("saecache", BLOCK_TOKENS, 512, 2**26, QUEUES, KINDS, 500, 4, 320, 192, {"chat": 7})


def fake_turn(request: ChatRequest) -> ChatTurn:
    """Returns a turn of plausible numbers: earlier turns are hits, the chunks' tokens are loaded or recomputed."""
    earlier = sum(len(split_tokens(message.text)) for message in request.messages[:-1])
    hits = earlier // BLOCK_TOKENS * BLOCK_TOKENS
    question = len(split_tokens(request.question)) + 4
    num_doc = sum(len(split_tokens(chunk.text + "\n")) for chunk in request.chunks)
    recomputed = num_doc if request.method == "full" else budget(request.ratio, num_doc)
    counts = (SYSTEM_TOKENS + hits, earlier - hits, num_doc - recomputed, recomputed, question)
    methods = ("full", request.method) if request.compare and request.method != "full" else (request.method,)
    run = None
    if request.chunks:
        asked = FusionRequest(request.question, request.chunks, request.ratio, max_new_tokens=request.max_new_tokens)
        run = fake_run(replace(asked, chunks=tuple(replace(chunk, text=chunk.text[:4000]) for chunk in request.chunks)), methods)
    cited = tuple(Citation(chunk.chunk_id, chunk.text[:20], 6) for chunk in request.chunks[:1])
    return ChatTurn(
        answer=ANSWER.format(question=request.question), run=run, provenance=PROVENANCE, method=request.method, finish="stop",
        tokens=("word ",) * sum(counts), sources=(SourceSpan(0, sum(counts), "prefix hit"),), num_answer_tokens=16,
        num_prefix_hits=counts[0], num_prefix_computed=counts[1], num_fused_loaded=counts[2], num_recomputed=counts[3],
        num_question=counts[4], num_turns_dropped=0, ttft_s=0.31, parts_s=ChatParts(0.002, 0.03, 0.06, 0.01, 0.03, 0.166, 0.012),
        citations=cited, notices=(),
    )  # fmt: skip


def fake_chat(
    request: ChatRequest, delay_s: float, slot: threading.Lock, cancelled: Callable[[], bool] = lambda: False
) -> Iterator[ChatStatus | ChatToken | ChatTurn]:
    """Yields what a turn yields, one at a time. A question with 'fail' ends in an EngineError, one with 'never ends' when it is stopped."""
    while not slot.acquire(timeout=0.05):
        if cancelled():
            raise Cancelled("Stopped while waiting.")
        yield ChatStatus("Waiting: 1 request ahead", 0.0, 1)
    try:
        turn = fake_turn(request)
        for i, word in enumerate(turn.answer.split(" ")):
            time.sleep(delay_s)
            yield ChatStatus(f"Answer token {i + 1}", i / 20)
            yield ChatToken(word if i == 0 else f" {word}")
            if "fail" in request.question:
                raise EngineError("The chunk store is full (2 GiB); drop a chunk or raise FUSESCOPE_CHUNK_GIB.")
        while "never ends" in request.question:
            time.sleep(0.05)
            if cancelled():
                raise Cancelled("Stopped.")
        yield turn
    finally:
        slot.release()


class FakeKv:
    """A library in a folder of its own, and an empty file for every chunk that waits for its KV, one after the other.

    Args:
        delay_s: for each file; None makes none.
    """

    def __init__(self, delay_s: float | None = 0.0) -> None:
        self._holder = tempfile.TemporaryDirectory(prefix="fusescope-test-", ignore_cleanup_errors=True)
        self._folder, self._delay_s = Path(self._holder.name), delay_s
        self.library = Library.open(self._folder, tools=LibraryTools(kv_model=lambda: MODEL, kv_files=KvFiles(self._folder)))
        if delay_s is not None:
            threading.Thread(target=self._compute, daemon=True).start()

    def _compute(self) -> None:
        while True:
            for job in self.library.kv.wanted(MODEL):
                time.sleep(self._delay_s or 0.0)
                kv_hash = blake2b(job.chunk.text.encode(), digest_size=16).hexdigest()
                (self._folder / f"{kv_hash}.safetensors").touch()
                self.library.kv.set(MODEL, job.chunk.chunk_id, kv_hash, 1_000_000, 160)
            time.sleep(0.05)
