"""Frozen values that cross a border of the engine: requests, plans and runs.

Knows numpy and nothing of models, torch or pictures. L layers, T prompt tokens, N document tokens,
m anchors. Positions are those of the concatenated prompt and start at 0. Times are seconds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.errors import BadRequest

ChunkContext = Literal["system", "alone", "primed", "primed-mean", "primed-one"]
CHUNK_CONTEXTS: tuple[ChunkContext, ...] = ("system", "alone", "primed", "primed-mean", "primed-one")
Mode = Literal["live", "replay", "simulated"]
Lane = Literal["disk", "copy", "device"]
Stage = Literal["probe", "select", "load", "load_wait", "recompute", "correct", "head", "decode"]
MAX_QUESTION_CHARS = 4_000


def check_characters(name: str, text: str) -> None:
    """Raises BadRequest where a text holds half a character (a lone surrogate), which neither tokenizers nor files take."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise BadRequest(f"{name} holds half a character ({half!r}) at place {error.start + 1:,}; send it whole or leave it out.") from None


@dataclass(frozen=True, slots=True)
class Chunk:
    """One retrieved passage. `relevance` is the retriever's score, None where nobody ranked."""

    chunk_id: str
    title: str
    text: str
    relevance: float | None = None

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise BadRequest(f"The chunk {self.chunk_id!r} has no text; drop it or write some.")
        for text in (self.chunk_id, self.title, self.text):
            check_characters(f"The chunk {self.chunk_id!r}", text)


@dataclass(frozen=True, slots=True)
class FusionRequest:
    """A question over chunks in a given order.

    Args:
        ratio: share of the document tokens that selective methods recompute, 0..1.
        gold_answers: known right answers, first one used for teacher forcing; may be empty.
        chunk_context: what a chunk saw when its cache was computed, unless a method brings its own: nothing ("alone"), the
            system part ("system"), that and a neutral primer ("primed"; the request's first chunk, which is exact
            behind the system part, stays "system") or the same for every chunk, one stored version each ("primed-one").
        repeats: how many times each method's time to first token is measured.
        supporting: (chunk_id, exact span) pairs that hold the answer; for recall and the picture.
    """

    question: str
    chunks: tuple[Chunk, ...]
    ratio: float = 0.3
    gold_answers: tuple[str, ...] = ()
    max_new_tokens: int = 32
    temperature: float = 0.0
    seed: int = 0
    chunk_context: ChunkContext = "system"
    repeats: int = 1
    scenario: str | None = None
    supporting: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise BadRequest("The question is empty; type one or pick one of the scenario's.")
        check_characters("The question", self.question)
        if len(self.question) > MAX_QUESTION_CHARS:
            raise BadRequest(
                f"The question has {len(self.question):,} characters; at most {MAX_QUESTION_CHARS:,} are allowed, so shorten it."
            )
        if not self.chunks:
            raise BadRequest("No chunk is selected; keep at least one.")
        if len({chunk.chunk_id for chunk in self.chunks}) != len(self.chunks):
            raise BadRequest("A chunk is listed twice; keep each chunk once.")
        if not (math.isfinite(self.ratio) and 0.0 <= self.ratio <= 1.0):
            raise BadRequest(f"The recompute ratio is {self.ratio}; it must be a number from 0 to 1.")
        if not (math.isfinite(self.temperature) and 0.0 <= self.temperature <= 2.0):
            raise BadRequest(f"The temperature is {self.temperature}; it must be a number from 0 (greedy) to 2.")
        if not 1 <= self.max_new_tokens <= 512:
            raise BadRequest(f"The answer length is {self.max_new_tokens} tokens; it must be from 1 to 512.")
        if not 1 <= self.repeats <= 20:
            raise BadRequest(f"The number of repeats is {self.repeats}; it must be from 1 to 20.")
        if self.chunk_context not in CHUNK_CONTEXTS:
            raise BadRequest(f"Unknown chunk context {self.chunk_context!r}; known ones are: {', '.join(CHUNK_CONTEXTS)}.")


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of work on one lane, in seconds since the request was started. layer -1: of no one layer."""

    lane: Lane
    stage: Stage
    layer: int
    start_s: float
    end_s: float
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TtftParts:
    """Time to first token, split by what the device was doing; the parts add up to the TTFT."""

    probe: float
    select: float
    load_wait: float
    recompute: float
    head: float


@dataclass(frozen=True, slots=True)
class Quality:
    """Answer quality of one method; None where there is no gold answer (or no full prefill) to compare with.

    Args:
        rouge_l, f1: of the generated answer against the best gold answer, 0..1.
        gold_nll: mean negative log-likelihood of the gold answer's tokens, nats, teacher-forced.
        kl_to_full: mean KL(full prefill || this method) over the same positions, nats.
        first_diverging_token: index of the first answer token that differs from full prefill's, None if none.
        span_recall: share of the supporting spans' tokens that were recomputed.
        contains_gold: whether a gold answer stands in the generated one, letter case aside.
        exact_match: whether the generated answer is a gold one after SQuAD's normalisation.
    """

    rouge_l: float | None
    f1: float | None
    gold_nll: float | None
    kl_to_full: float | None
    first_diverging_token: int | None
    span_recall: float | None
    contains_gold: bool | None = None
    exact_match: bool | None = None


@dataclass(frozen=True, eq=False, slots=True)
class MethodRun:
    """One method's part of a run.

    Args:
        rows: int32 [n], prompt positions recomputed, question included.
        ranking: int32 [N], document positions, best first, or None where the method does not rank. The rows at another
            ratio r are the question's and the first max(1, floor(r N)) of these.
        scores: float32 [N], in document order, or None.
        critical_layers: layers the scores were read at.
        anchors: int32 [layers, m], positions that stood in for the context in the probe, or None.
        ttft_s: median of `ttft_repeats_s`; `spans` and `parts_s` are those of the repeat nearest to it.
        loaded_bytes: bytes of stored KV read for one request.
        num_cache_hits: document tokens whose KV was reused.
        token_times_s: float32, seconds from the first answer token to each.
        kv_distance: float32 [L, 2], relative L2 distance of K and of V to full prefill over the document
            tokens, or None where full prefill was not run.
        chunk_context: what the stored chunks it read had seen.
        layer_rows: int32 [L], rows computed per layer, or None where they are `rows` in every layer.
        server_ttft_s: median of what a server took by its own clock from a request's arrival to its first token; None where it told
            nothing, or the built-in engine ran, whose `ttft_s` is taken inside.
    """

    method: str
    params: dict[str, bool | float | int | str]
    rows: np.ndarray
    ranking: np.ndarray | None
    scores: np.ndarray | None
    critical_layers: tuple[int, ...]
    anchors: np.ndarray | None
    spans: tuple[Span, ...]
    ttft_s: float
    ttft_repeats_s: tuple[float, ...]
    parts_s: TtftParts
    loaded_bytes: int
    num_cache_hits: int
    answer: str
    answer_ids: np.ndarray
    token_times_s: np.ndarray
    quality: Quality
    kv_distance: np.ndarray | None
    chunk_context: ChunkContext = "system"
    layer_rows: np.ndarray | None = None
    server_ttft_s: float | None = None


@dataclass(frozen=True, slots=True)
class RunChunk:
    """Where a chunk stands in the prompt ([start, stop) positions) and where its cache came from.

    `precompute_s` is what computing its KV took, now or when it was stored; 0 where that is not known.
    """

    chunk_id: str
    title: str
    cache_hash: str
    start: int
    stop: int
    relevance: float | None
    source: Literal["disk", "memory", "computed"]
    size_bytes: int
    precompute_s: float


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the numbers of a run come from. `page_cache` says what "disk" means in it."""

    mode: Mode
    created: str
    commit: str
    model: str
    revision: str
    weights: str
    dtype: str
    device: str
    num_threads: int
    kernels: str
    disk_mb_per_s: float | None
    page_cache: str
    versions: dict[str, str]

    @property
    def served_by(self) -> str | None:
        """Returns the badge of a server that computed the numbers, None for the built-in engine."""
        return "SGLang" if "sglang" in self.versions else None


@dataclass(frozen=True, eq=False, slots=True)
class Run:
    """Everything any picture of one request needs; saved, loaded and replayed as a file.

    Args:
        tokens: T pieces of text; joined they are the prompt.
        system_len: the first tokens, never recomputed by selective methods.
        question_start: first token of the question segment; document tokens are [system_len, question_start).
        question_span: [start, stop) of the question's own words, whose attention is scored.
        answer_spans: [start, stop) prompt positions of the supporting spans.
    """

    provenance: Provenance
    scenario: str | None
    question: str
    gold_answers: tuple[str, ...]
    ratio: float
    chunk_context: ChunkContext
    max_new_tokens: int
    temperature: float
    seed: int
    num_layers: int
    tokens: tuple[str, ...]
    token_ids: np.ndarray
    system_len: int
    question_start: int
    question_span: tuple[int, int]
    answer_spans: tuple[tuple[int, int], ...]
    chunks: tuple[RunChunk, ...]
    methods: tuple[MethodRun, ...]
    notices: tuple[str, ...] = ()

    @property
    def num_doc_tokens(self) -> int:
        """Returns N, the number of document tokens."""
        return self.question_start - self.system_len

    def method(self, name: str) -> MethodRun | None:
        """Returns the part of the method called `name`, or None where it was not run."""
        return next((m for m in self.methods if m.method == name), None)


@dataclass(frozen=True, slots=True)
class Status:
    """What a running request is doing: one sentence, the share done (0..1), answers so far by method.

    `queue_position` is 0 while the request runs and counts the requests ahead of it while it waits.
    """

    message: str
    fraction: float
    queue_position: int = 0
    answers: Mapping[str, str] = field(default_factory=dict)


def budget(ratio: float, num_doc_tokens: int) -> int:
    """Returns how many document tokens a ratio allows: max(1, floor(r N)), 0 at r = 0 (2606.05875, 3.3)."""
    if ratio <= 0.0:
        return 0
    return min(num_doc_tokens, max(1, math.floor(ratio * num_doc_tokens + 1e-9)))
