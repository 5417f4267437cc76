"""The lane to a running SGLang server with the plugin: the same request by several methods there, as the same Run.

Talks HTTP and tokenises; imports nothing of SGLang. Times to the first token are the client's: from sending the prompt's ids to the first
streamed token; what the server spent inside comes with its answer.
"""

import datetime
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import metrics
from engine.checkout import commit
from engine.errors import Cancelled, ModelUnavailable
from engine.model.loader import LoadedModel
from engine.model.prompt import Prompt, PromptBuilder
from engine.provenance import PAGE_CACHE
from engine.serving.sglang.metadata import FIELD
from engine.serving.sglang_answer import Asked, Streamed
from engine.serving.sglang_methods import asked, made, new_salt
from engine.serving.sglang_server import SGLangServer
from engine.serving.sglang_times import inside, parts, server_ttft, spans
from engine.types import FusionRequest, MethodRun, Provenance, Quality, Run, RunChunk, Status

BADGE = "SGLang"


@dataclass(eq=False)
class _Timed:
    method: str
    asked: Asked
    answers: list[Streamed]


class _Teller:
    """Asks the server for one method after the other, and tells how far the run is and what has been answered so far."""

    def __init__(self, server: SGLangServer, on_status: Callable[[Status], None], cancelled: Callable[[], bool]) -> None:
        self._server, self._on_status, self._cancelled = server, on_status, cancelled
        self._answers: dict[str, str] = {}

    def __call__(self, entry: _Timed, what: str, share: float, writes: bool) -> Streamed:
        """Returns a method's answer, its first token alone unless it `writes`. Raises BackendUnavailable, Cancelled."""

        def tell(text: str) -> None:
            if writes:
                self._answers[entry.method] = text
            self._on_status(Status(f"{entry.method}: {what}", share, answers=dict(self._answers)))

        if self._cancelled():
            raise Cancelled("Stopped before the server was asked.")
        tell("")
        fresh = entry.asked if entry.asked.salt is None else entry.asked._replace(salt=new_salt())
        return self._server.stream(fresh if writes else fresh._replace(max_new_tokens=1), self._cancelled, tell)


class SGLangClient:
    """Runs requests on one server.

    Args:
        tokenizer: the server's model's; without one it is loaded from where the server has it.

    Raises BackendUnavailable, ModelUnavailable.
    """

    def __init__(self, server: SGLangServer, tokenizer: Any | None = None) -> None:
        self.server, self.info = server, server.info()
        self._prompts = PromptBuilder(tokenizer or server.tokenizer(), self.info.max_context)

    def run(
        self,
        request: FusionRequest,
        methods: Sequence[str],
        on_status: Callable[[Status], None] = lambda status: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Run:
        """Returns the run of a request, every method timed in turn. Raises BadRequest, UnknownName, BackendUnavailable, Cancelled.

        A method that the server could not fuse was computed in full there; the run's notices say why.
        """
        prompt = self._prompts.build([self._prompts.chunk(chunk) for chunk in request.chunks], request.question, request.max_new_tokens)
        names = sorted(dict.fromkeys(methods), key=lambda name: name != "full")
        timed = [_Timed(name, asked(name, request, prompt), []) for name in names]
        ask = _Teller(self.server, on_status, cancelled)
        # What is to be found in a cache is put there first, as the built-in engine does before it measures.
        others = [entry for entry in timed if entry.method != "full"]
        first = [ask(entry, f"filling the caches of {BADGE}", 0.0, writes=False) for entry in others]
        for i in range(request.repeats):
            for j, entry in enumerate(timed):
                share = (i * len(timed) + j) / (request.repeats * len(timed))
                writes = i == request.repeats - 1
                entry.answers.append(ask(entry, f"{i + 1} of {request.repeats} on {BADGE}", share, writes))
        return self._assemble(request, prompt, _chunks(request, prompt, first), timed)

    def _assemble(self, request: FusionRequest, prompt: Prompt, chunks: tuple[RunChunk, ...], timed: Sequence[_Timed]) -> Run:
        full = next((entry.answers[-1].ids for entry in timed if entry.method == "full"), None)
        return Run(
            provenance=self._provenance(),
            scenario=request.scenario,
            question=request.question,
            gold_answers=request.gold_answers,
            ratio=request.ratio,
            chunk_context=request.chunk_context,
            max_new_tokens=request.max_new_tokens,
            temperature=request.temperature,
            seed=request.seed,
            num_layers=int(self.info.fusion["num_layers"]),
            tokens=prompt.pieces,
            token_ids=prompt.ids.astype(np.int32),
            system_len=prompt.system_len,
            question_start=prompt.question_start,
            question_span=prompt.question_span,
            answer_spans=_answer_spans(request, prompt),
            chunks=chunks,
            methods=tuple(self._method_run(request, prompt, entry, full) for entry in timed),
            notices=_notices(self.info.fusion, timed),
        )

    def _method_run(self, request: FusionRequest, prompt: Prompt, timed: _Timed, full: np.ndarray | None) -> MethodRun:
        middle = statistics.median(answer.ttft_s for answer in timed.answers)
        shown = min(timed.answers, key=lambda answer: abs(answer.ttft_s - middle))
        told, golds, last = _told(shown), request.gold_answers, timed.answers[-1]
        done, loaded = inside(told, shown.meta), int(told.get("loaded_bytes", 0))
        method = made(timed.method, request)
        rows = np.asarray(told["rows"], np.int32) if told.get("fused") else np.arange(shown.num_cached, prompt.num_tokens, dtype=np.int32)
        computed = int(((rows >= prompt.system_len) & (rows < prompt.question_start)).sum())
        return MethodRun(
            method=timed.method,
            params={} if method is None else method.params(),
            rows=rows,
            ranking=None,
            scores=None,
            critical_layers=tuple(told.get("critical_layers", ())),
            anchors=None,
            spans=spans(done, shown.ttft_s, loaded),
            ttft_s=middle,
            ttft_repeats_s=tuple(answer.ttft_s for answer in timed.answers),
            parts_s=parts(done, shown.ttft_s),
            loaded_bytes=loaded,
            num_cache_hits=prompt.num_doc_tokens - computed,
            answer=last.text,
            answer_ids=last.ids,
            token_times_s=last.times_s,
            quality=Quality(
                rouge_l=metrics.rouge_l(last.text, golds),
                f1=metrics.token_f1(last.text, golds),
                gold_nll=None,
                kl_to_full=None,
                first_diverging_token=None if full is None else metrics.first_difference(last.ids, full),
                span_recall=metrics.span_recall(rows, _answer_spans(request, prompt)),
                contains_gold=metrics.contains_gold(last.text, golds),
                exact_match=metrics.exact_match(last.text, golds),
            ),
            kv_distance=None,
            chunk_context=(method and method.chunk_context) or request.chunk_context,
            server_ttft_s=server_ttft([answer.meta for answer in timed.answers]),
        )

    def _provenance(self) -> Provenance:
        info, told = self.info, self.info.fusion
        return Provenance(
            mode="live",
            created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
            commit=commit(),
            model=str(told["model"]),
            revision=str(told["revision"]),
            weights=str(told["weights"]),
            dtype=str(told["dtype"]),
            device=f"{told['device']}, {BADGE} {info.version}",
            num_threads=int(told["num_threads"]),
            kernels=f"{BADGE} {info.version} {info.attention_backend}; {told['kernels']}; prefix cache by {info.policy}",
            disk_mb_per_s=None,
            page_cache=PAGE_CACHE["kept"],
            versions={"sglang": info.version},
        )


def client_of(server: SGLangServer, model: LoadedModel) -> SGLangClient:
    """Returns a client of a server that serves the model in use: by other tokens nothing could be compared.

    Raises ModelUnavailable, BackendUnavailable.
    """
    client = SGLangClient(server, model.tokenizer)
    served = str(client.info.fusion["model"])
    if served != model.spec.name:
        raise ModelUnavailable(
            f"The SGLang server at {server.host} serves {served!r}, and the model in use here is {model.spec.name!r}; "
            "both must be the same, so load the server's model here or start the server with this one."
        )
    return client


def _answer_spans(request: FusionRequest, prompt: Prompt) -> tuple[tuple[int, int], ...]:
    """Returns the [start, stop) prompt positions of the spans that hold the answer."""
    places = {chunk.chunk_id: i for i, chunk in enumerate(request.chunks)}
    found = [prompt.spans_of(places[chunk_id], text) for chunk_id, text in request.supporting if chunk_id in places]
    return tuple(span for spans_of_one in found for span in spans_of_one)


def _chunks(request: FusionRequest, prompt: Prompt, first: Sequence[Streamed]) -> tuple[RunChunk, ...]:
    """Returns where the chunks stand and where their caches came from, by the first answer that was fused; "computed" without one."""
    told: Sequence[Sequence[Any]] = next((found["chunks"] for answer in first if (found := _told(answer)).get("chunks")), ())
    known = told or [("", "computed", 0, 0.0)] * len(request.chunks)
    return tuple(
        RunChunk(chunk.chunk_id, chunk.title, name, *span, chunk.relevance, source, size_bytes, time_s)
        for chunk, span, (name, source, size_bytes, time_s) in zip(request.chunks, prompt.chunk_spans, known, strict=True)
    )


def _told(answer: Streamed) -> Mapping[str, Any]:
    return next((entry for entry in answer.meta.get(FIELD, ()) if entry), {})


def _notices(fusion: Mapping[str, Any], timed: Sequence[_Timed]) -> tuple[str, ...]:
    guess = (str(fusion["calibration_note"]),) if fusion["calibration"] == "guess" else ()
    reasons = ((entry.method, _told(entry.answers[-1]).get("reason")) for entry in timed)
    return guess + tuple(f"{method} was computed in full on {BADGE}: {reason}" for method, reason in reasons if reason)
