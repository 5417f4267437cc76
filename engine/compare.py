"""One request by several methods, on the same ids, timed in turn: the Run that every picture is drawn from."""

import statistics
from collections.abc import Callable, Container, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine import metrics
from engine.fusion.base import FusionMethod
from engine.fusion.compose import create_method, has_ratio, has_seed
from engine.fusion.decode import Decoded, decode, forced_log_probs
from engine.fusion.drafted import decode_drafted
from engine.fusion.pipeline import Prefilled
from engine.model.cache import RequestCache
from engine.provenance import provenance
from engine.runtime import Prepared, Progress, Runtime
from engine.types import ChunkContext, FusionRequest, MethodRun, Quality, Run


class Reference(NamedTuple):
    """What full prefill did, for the others to be compared with. log_probs: [n + 1, vocabulary] of the forced answer."""

    cache: RequestCache
    decoded: Decoded
    forced_ids: np.ndarray
    log_probs: Tensor


class _Timed(NamedTuple):
    name: str
    method: FusionMethod
    runs: list[Prefilled]


def create_methods(names: Sequence[str], request: FusionRequest) -> dict[str, FusionMethod]:
    """Returns the named methods with the request's ratio and seed where they have them; full prefill first.

    Raises UnknownName.
    """
    made = {}
    for name in sorted(dict.fromkeys(names), key=lambda name: name != "full"):
        ratio = {"ratio": request.ratio} if has_ratio(name) else {}
        seed = {"seed": request.seed} if has_seed(name) else {}
        made[name] = create_method(name, **ratio, **seed)
    return made


def contexts_of(methods: Iterable[FusionMethod], request: FusionRequest) -> tuple[ChunkContext, ...]:
    """Returns the chunk contexts that the methods will read, the request's first."""
    return tuple(dict.fromkeys([request.chunk_context, *(method.chunk_context or request.chunk_context for method in methods)]))


class Comparison:
    """Runs one prepared request by several methods on one runtime.

    Args:
        are_times_read: whether the times of an answer's tokens are; without, methods after the first write theirs faster, from drafts,
            `on_answer` hears nothing of them, and their times are NaN.
    """

    def __init__(
        self,
        runtime: Runtime,
        request: FusionRequest,
        prepared: Prepared,
        progress: Progress = lambda text, share: None,
        on_answer: Callable[[str, str], bool | None] = lambda method, text: None,
        cancelled: Callable[[], bool] = lambda: False,
        are_times_read: bool = True,
    ) -> None:
        self._runtime, self._request, self._prepared = runtime, request, prepared
        self._progress, self._on_answer, self._cancelled = progress, on_answer, cancelled
        self._reference: Reference | None = None
        self._drafts: list[np.ndarray] = []
        self._may_draft = not are_times_read and request.temperature == 0.0

    def run(self, methods: dict[str, FusionMethod], notices: Sequence[str] = (), generate: Container[str] | None = None) -> Run:
        """Returns the finished run. Times are taken in rounds over all methods; answers in the last round.

        Raises Cancelled, StoreError, BadRequest.

        Args:
            generate: names of the methods that write an answer, None for all; the others are teacher-forced only.
        """
        timed = [_Timed(name, method, []) for name, method in methods.items()]
        finished: list[MethodRun] = []
        rounds, total = self._request.repeats, self._request.repeats * len(timed)
        for i in range(rounds):
            for j, entry in enumerate(timed):
                self._progress(f"{entry.name}: prefill {i + 1} of {rounds}", (i * len(timed) + j) / total)
                cache = self._cache(entry.name)
                entry.runs.append(self._prefill(entry.method, cache))
                if i == rounds - 1:
                    writes = generate is None or entry.name == "full" or entry.name in generate
                    finished.append(self._finish(entry, cache, writes))
        return self._assemble(finished, tuple(notices))

    def _cache(self, name: str) -> RequestCache:
        room = self._prepared.prompt.num_tokens + max(self._request.max_new_tokens, 64) + 1
        return self._runtime.pool.get("full" if name == "full" else "method", room)

    def _prefill(self, method: FusionMethod, cache: RequestCache) -> Prefilled:
        placed = self._prepared.placed[method.chunk_context or self._request.chunk_context]
        if self._runtime.settings.page_cache != "kept" and method.reads_cache:
            for part in placed:
                if part.chunk is not None:
                    part.chunk.drop_pages()
        prompt, fill_prefix = self._prepared.prompt, self._prepared.fill_prefix
        return self._runtime.pipeline.prefill(method, prompt, placed, cache, self._cancelled, fill_prefix)

    def _finish(self, timed: _Timed, cache: RequestCache, writes: bool) -> MethodRun:
        """Returns the method's part: its answer where it writes one, its quality, the spans of its median repeat."""
        request, last = self._request, timed.runs[-1]
        decoded = self._decode(timed.name, last, cache, request.max_new_tokens if writes else 0)
        answer = self._runtime.text(decoded.ids.tolist())
        quality = self._quality(timed.name, last, cache, decoded, answer if writes else None)
        shown = _median_run(timed.runs)
        return MethodRun(
            method=timed.name,
            params=timed.method.params(),
            rows=shown.plan.rows.astype(np.int32),
            ranking=shown.plan.ranking,
            scores=shown.plan.scores,
            critical_layers=shown.plan.critical_layers,
            anchors=shown.plan.anchors,
            spans=shown.spans,
            ttft_s=statistics.median(run.ttft_s for run in timed.runs),
            ttft_repeats_s=tuple(run.ttft_s for run in timed.runs),
            parts_s=shown.parts_s,
            loaded_bytes=shown.loaded_bytes,
            num_cache_hits=self._num_hits(shown),
            answer=answer,
            answer_ids=decoded.ids,
            token_times_s=decoded.times_s,
            quality=quality,
            kv_distance=self._distance(cache),
            chunk_context=timed.method.chunk_context or request.chunk_context,
            layer_rows=shown.plan.layer_rows,
        )

    def _decode(self, name: str, last: Prefilled, cache: RequestCache, max_new_tokens: int) -> Decoded:
        decoder, request, start = self._runtime.decoder, self._request, self._prepared.prompt.num_tokens
        if self._may_draft and self._drafts:
            ids = decode_drafted(decoder, last.logits, start, cache, max_new_tokens, self._drafts)
            decoded = Decoded(ids, np.full(len(ids), np.nan, np.float32))
        else:
            decoded = decode(
                decoder,
                last.logits,
                start,
                cache,
                max_new_tokens,
                request.temperature,
                request.seed,
                on_token=lambda ids: self._on_answer(name, self._runtime.text(ids)),
                cancelled=self._cancelled,
                steps=self._runtime.steps,
            )
        self._drafts.append(decoded.ids)
        return decoded

    def _quality(self, name: str, last: Prefilled, cache: RequestCache, decoded: Decoded, answer: str | None) -> Quality:
        golds, start = self._request.gold_answers, self._prepared.prompt.num_tokens
        if self._reference is not None:
            forced = self._reference.forced_ids
        else:
            forced = self._runtime.prompts.tokenize(golds[0]).ids if golds else decoded.ids
        comparable = bool(golds) or name == "full" or self._reference is not None
        log_probs = forced_log_probs(self._runtime.decoder, last.logits, forced, start, cache) if len(forced) and comparable else None
        if name == "full" and log_probs is not None:
            self._reference = Reference(cache, decoded, forced, log_probs)
        full, written = self._reference, answer is not None
        return Quality(
            rouge_l=metrics.rouge_l(answer, golds) if written else None,
            f1=metrics.token_f1(answer, golds) if written else None,
            gold_nll=metrics.mean_nll(log_probs, forced) if golds and log_probs is not None else None,
            kl_to_full=metrics.mean_kl(full.log_probs, log_probs) if full and log_probs is not None else None,
            first_diverging_token=metrics.first_difference(decoded.ids, full.decoded.ids) if full and written else None,
            span_recall=metrics.span_recall(last.plan.rows, self._answer_spans()),
            contains_gold=metrics.contains_gold(answer, golds) if written else None,
            exact_match=metrics.exact_match(answer, golds) if written else None,
        )

    def _distance(self, cache: RequestCache) -> np.ndarray | None:
        # Keys at other rotary positions than full prefill's cannot be compared with its keys.
        if self._reference is None or cache.reading.rope_offset:
            return None
        prompt, full = self._prepared.prompt, self._reference.cache
        docs = slice(prompt.system_len, prompt.question_start)
        return metrics.kv_distance(cache.keys[:, docs], cache.values[:, docs], full.keys[:, docs], full.values[:, docs])

    def _num_hits(self, shown: Prefilled) -> int:
        prompt = self._prepared.prompt
        rows = shown.plan.rows
        computed = int(((rows >= prompt.system_len) & (rows < prompt.question_start)).sum())
        return prompt.num_doc_tokens - computed

    def _answer_spans(self) -> tuple[tuple[int, int], ...]:
        index = {chunk.chunk_id: i for i, chunk in enumerate(self._request.chunks)}
        found = [self._prepared.prompt.spans_of(index[chunk_id], text) for chunk_id, text in self._request.supporting if chunk_id in index]
        return tuple(span for spans in found for span in spans)

    def _assemble(self, finished: Sequence[MethodRun], notices: tuple[str, ...]) -> Run:
        prompt, request, runtime = self._prepared.prompt, self._request, self._runtime
        return Run(
            provenance=provenance(runtime, [span for method in finished for span in method.spans]),
            scenario=request.scenario,
            question=request.question,
            gold_answers=request.gold_answers,
            ratio=request.ratio,
            chunk_context=request.chunk_context,
            max_new_tokens=request.max_new_tokens,
            temperature=request.temperature,
            seed=request.seed,
            num_layers=runtime.model.spec.num_layers,
            tokens=prompt.pieces,
            token_ids=prompt.ids.astype(np.int32),
            system_len=prompt.system_len,
            question_start=prompt.question_start,
            question_span=prompt.question_span,
            answer_spans=self._answer_spans(),
            chunks=self._prepared.chunks[request.chunk_context],
            methods=tuple(finished),
            notices=notices,
        )


@torch.inference_mode()
def compare(
    runtime: Runtime,
    request: FusionRequest,
    names: Sequence[str],
    progress: Progress = lambda text, share: None,
    on_answer: Callable[[str, str], bool | None] = lambda method, text: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Run:
    """Returns the run of a request by the named methods. Raises EngineError of every kind."""
    methods = create_methods(names, request)
    prepared = runtime.prepare(request, progress, cancelled, contexts_of(methods.values(), request))
    notices = runtime.store.drain_notices()
    if runtime.calibration.origin == "guess":
        notices += (runtime.calibration.note,)
    return Comparison(runtime, request, prepared, progress, on_answer, cancelled).run(methods, notices)


def _median_run(runs: Sequence[Prefilled]) -> Prefilled:
    middle = statistics.median(run.ttft_s for run in runs)
    return min(runs, key=lambda run: abs(run.ttft_s - middle))
