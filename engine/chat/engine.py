"""Answers turns of conversations: exact prefix from the cache, chunks fused behind it, the answer decoded.

One request at a time. The engine behind the Fuse tab does the work; this puts a conversation's past before its chunks.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from engine.chat.account import account, chat_parts
from engine.chat.citations import citations
from engine.chat.history import Fitted, HistoryFormat, Past, Turn, spoken
from engine.chat.prefixes import DEFAULT_POLICY, Asking, ConversationPrefixes, PrefixUse, session_number
from engine.chat.types import ChatRequest, ChatTurn, first_stop
from engine.chunks.prefetch import Placed
from engine.compare import Comparison, contexts_of, create_methods
from engine.errors import BadRequest, StoreError
from engine.fusion.base import METHODS
from engine.fusion.decode import decode
from engine.fusion.plan import FusionPlan
from engine.model.cache import RequestCache
from engine.model.prompt import Prompt
from engine.prefix.roles import without_thinking
from engine.provenance import provenance
from engine.recorder import Recorder
from engine.runtime import Prefix, Progress, Runtime
from engine.types import FusionRequest, Provenance, Run, TtftParts

Cancelled = Callable[[], bool]
OnText = Callable[[str], None]


class _Answered(NamedTuple):
    """What both ways to an answer have in common; run is None where nothing was fused."""

    prompt: Prompt
    rows: np.ndarray
    answer: str
    num_answer_tokens: int
    ttft_s: float
    parts_s: TtftParts
    provenance: Provenance
    run: Run | None


class ChatEngine:
    """Conversations on one runtime, their exact prefixes in one cache.

    Args:
        now: the cache's clock in seconds; it must not go back.
    """

    def __init__(self, runtime: Runtime, now: Callable[[], float] = time.monotonic) -> None:
        self.runtime, self._now = runtime, now
        spec = runtime.model.spec
        self.history = HistoryFormat(runtime.model.tokenizer, runtime.prompts, spec.max_context)
        self.prefixes = self._new_prefixes(DEFAULT_POLICY)

    @torch.inference_mode()
    def turn(
        self,
        request: ChatRequest,
        progress: Progress = lambda text, share: None,
        on_text: OnText = lambda text: None,
        cancelled: Cancelled = lambda: False,
    ) -> ChatTurn:
        """Returns the answered turn. Raises EngineError of every kind; nothing of a turn given up stays but its exact prefix.

        Args:
            on_text: called with the whole answer so far, after each token.
        """
        notices = self._use_policy(request.policy)
        runtime, uses = self.runtime, list[PrefixUse]()
        fitted = self.history.fit(request, [runtime.prompts.chunk(chunk) for chunk in request.chunks])
        asking = self._asking(request)
        if request.compare:
            # Both methods then find the same blocks.
            self._keep(asking, fitted.past, cancelled)

        def fill(cache: RequestCache, recorder: Recorder, stopped: Cancelled) -> None:
            # A turn that is tried again has asked already.
            counts = not request.compare and not uses
            uses.append(self.prefixes.fill(asking, fitted.past.typed(), cache, recorder, stopped, counts))

        answer = self._fused if request.chunks else self._plain
        done = answer(request, Prefix(fitted.frame, fill), progress, on_text, cancelled)
        # What a turn that was tried again finds of its own first try was no hit; its times are the last try's.
        use = uses[0]._replace(load_s=uses[-1].load_s, compute_s=uses[-1].compute_s)
        return _told(request, fitted, done, use, (*notices, *_dropped(fitted)))

    @torch.inference_mode()
    def settle(self, request: ChatRequest, turn: ChatTurn) -> None:
        """Computes what the next turn's prefix will be, the answered turn without its documents, so that it is found there."""
        instructions, turns = spoken(request)
        answer = without_thinking(turn.answer[: first_stop(turn.answer, request.stops)]).strip()
        past = self.history.past(instructions, (*turns[turn.num_turns_dropped :], Turn(request.question, answer)))
        if len(past.segment) < self.runtime.model.spec.max_context:
            self._keep(self._asking(request), past, lambda: False)

    def _fused(self, request: ChatRequest, prefix: Prefix, progress: Progress, on_text: OnText, cancelled: Cancelled) -> _Answered:
        try:
            return self._compared(request, prefix, progress, on_text, cancelled)
        except StoreError as error:
            # A file vanished or broke under the turn: the store has set it aside, so the chunk is computed anew.
            progress(f"{error} It is computed again.", 0.0)
            return self._compared(request, prefix, progress, on_text, cancelled)

    def _compared(self, request: ChatRequest, prefix: Prefix, progress: Progress, on_text: OnText, cancelled: Cancelled) -> _Answered:
        runtime, asked = self.runtime, _fusion_request(request)
        methods = create_methods(("full", request.method) if request.compare else (request.method,), asked)
        prepared = runtime.prepare(asked, progress, cancelled, contexts_of(methods.values(), asked), prefix)
        notices = runtime.store.drain_notices()
        if runtime.calibration.origin == "guess":
            notices += (runtime.calibration.note,)

        def on_answer(method: str, text: str) -> bool:
            if method == request.method:
                on_text(text)
            return first_stop(text, request.stops) is not None

        run = Comparison(runtime, asked, prepared, progress, on_answer, cancelled).run(methods, notices)
        method = run.method(request.method)
        assert method is not None
        times, origin = (method.ttft_s, method.parts_s), run.provenance
        return _Answered(prepared.prompt, method.rows, method.answer, len(method.answer_ids), *times, origin, run)

    def _plain(self, request: ChatRequest, prefix: Prefix, progress: Progress, on_text: OnText, cancelled: Cancelled) -> _Answered:
        """Returns the answer of a turn without chunks: all of it is exact."""
        runtime, room = self.runtime, request.max_new_tokens
        prompt = runtime.prompts.build([], request.question, room, prefix.frame)
        cache = runtime.pool.get("method", prompt.num_tokens + room + 1)
        progress("Reading the question", 0.0)
        placed = (Placed(None, 0, prompt.system_len, is_exact=True),)
        filled = runtime.pipeline.prefill(METHODS.create("full"), prompt, placed, cache, cancelled, prefix.fill)
        plan: FusionPlan = filled.plan

        def tell(ids: list[int]) -> bool:
            text = runtime.text(ids)
            on_text(text)
            return first_stop(text, request.stops) is not None

        sampled = (room, request.temperature, request.seed)
        ids = decode(
            runtime.decoder, filled.logits, prompt.num_tokens, cache, *sampled, on_token=tell, cancelled=cancelled, steps=runtime.steps
        ).ids
        times, origin = (filled.ttft_s, filled.parts_s), provenance(runtime, filled.spans)
        return _Answered(prompt, plan.rows, runtime.text(ids.tolist()), len(ids), *times, origin, None)

    def _keep(self, asking: Asking, past: Past, cancelled: Cancelled) -> None:
        """Computes what is missing of a past, without anybody asking."""
        cache, recorder = self.runtime.pool.get("method", len(past.segment)), Recorder(self.runtime.decoder.device)
        self.prefixes.fill(asking, past.typed(), cache, recorder, cancelled, counts=False)

    def _use_policy(self, name: str | None) -> tuple[str, ...]:
        """Changes the eviction policy where a request names another; returns what is to be said. Raises UnknownName, BadRequest."""
        if name is None or name == self.prefixes.policy:
            return ()
        if self.runtime.settings.protection.public:
            raise BadRequest(
                f"The prefix cache here is under {self.prefixes.policy} for everyone and {name!r} would empty it; leave the policy out."
            )
        self.prefixes = self._new_prefixes(name)
        return (f"The prefix cache is now under {name} and begins empty.",)

    def _new_prefixes(self, policy: str) -> ConversationPrefixes:
        return ConversationPrefixes(self.runtime.decoder, policy, self.runtime.settings.prefix_bytes, self._now)

    def _asking(self, request: ChatRequest) -> Asking:
        _, turns = spoken(request)
        # Nameless conversations are told apart by how they began.
        began = turns[0].question if turns else request.question
        return Asking(session_number(request.conversation or began), len(turns))


def _fusion_request(request: ChatRequest) -> FusionRequest:
    return FusionRequest(
        request.question,
        request.chunks,
        ratio=request.ratio,
        max_new_tokens=request.max_new_tokens,
        temperature=request.temperature,
        seed=request.seed,
        chunk_context=request.chunk_context,
    )


def _dropped(fitted: Fitted) -> tuple[str, ...]:
    num = fitted.num_dropped
    if not num:
        return ()
    turns = "turn is" if num == 1 else f"{num} turns are"
    return (f"The oldest {turns} left out of the prompt: the whole conversation is longer than the model reads.",)


def _told(request: ChatRequest, fitted: Fitted, done: _Answered, use: PrefixUse, notices: Sequence[str]) -> ChatTurn:
    spans, (hits, computed, loaded, recomputed, question) = account(done.prompt, done.rows, use)
    run = done.run and replace(done.run, notices=(*done.run.notices, *notices))
    return ChatTurn(
        answer=done.answer,
        run=run,
        provenance=done.provenance,
        method=request.method,
        finish="length" if done.num_answer_tokens == request.max_new_tokens and first_stop(done.answer, request.stops) is None else "stop",
        tokens=done.prompt.pieces,
        sources=spans,
        num_answer_tokens=done.num_answer_tokens,
        num_prefix_hits=hits,
        num_prefix_computed=computed,
        num_fused_loaded=loaded,
        num_recomputed=recomputed,
        num_question=question,
        num_turns_dropped=fitted.num_dropped,
        ttft_s=done.ttft_s,
        parts_s=chat_parts(done.parts_s, use),
        citations=citations(done.answer, request.chunks),
        notices=run.notices if run else tuple(notices),
    )
