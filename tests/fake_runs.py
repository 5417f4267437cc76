"""Synthetic runs of realistic size over fictional and hostile scenarios, made without a model."""

import random
import re
import zlib
from dataclasses import dataclass, replace

import numpy as np

from engine.method_list import method_names
from engine.scenarios import Passage, Question, Scenario, Support
from engine.types import (
    CHUNK_CONTEXTS,
    Chunk,
    FusionRequest,
    MethodRun,
    Provenance,
    Quality,
    Run,
    RunChunk,
    Span,
    TtftParts,
    budget,
)

NUM_LAYERS, CRITICAL_LAYER = 30, 20
ALL_METHODS = method_names()
# Where fake methods read their scores; the others have none.
LAYERS_READ = {
    "qcfuse": (CRITICAL_LAYER,),
    "qcfuse_cv": (CRITICAL_LAYER, 22, 24),
    "qcfuse_learned": tuple(range(10, NUM_LAYERS)),
    "qcall": tuple(range(NUM_LAYERS)),
    "qclast": (NUM_LAYERS - 1,),
    "infoflow": (NUM_LAYERS - 2, NUM_LAYERS - 1),
}
PICK_NOTHING, WITHOUT_SCORES, RUN_LAYER_0 = ("reuse", "ape"), ("epic", "random"), ("cacheblend", "kvshare", "qcfuse_learned")
KV_BYTES = NUM_LAYERS * 2 * 3 * 64 * 4
TOPICS = re.split(
    r"\s*[|]\s*",
    """Tidal gate of Orsund|Lantern ferry timetable|Harbour master's log|The Velden lighthouse|Salt store inventory|Bridge repair of 1931|
    Fog signal trials|Ice winter in the strait|Pilot school roll|The stone pier dispute|Rope works fire|Night mail crossing""",
)
NAMES = ("Ilka Brandt", "Osric Vael", "Maren Holt", "Tomas Rieke", "Ada Lindqvist", "Pell Aarden")
VERBS = ("inspected", "rebuilt", "measured", "described", "closed", "painted", "sold", "mapped")
THINGS = ("the northern sluice", "a cast-iron hinge", "the copper register", "two oak barges", "the signal mast", "an old tide table")
INJECTION = (
    "price is ${window.__pwned=1} and {{value}} \\(x_i\\) $x_i$ `tick` </script><script>window.__pwned=2</script>"
    '<img src=x onerror="window.__pwned=3"> <b>bold?</b> שלום עולם مرحبا 🧩 &amp; &lt;i&gt;'
)


PROVENANCE = Provenance(
    "live", "2026-11-29 10:00 UTC", "0123abc", "SmolLM2-135M-Instruct", "main", "Q4_1 dequantised", "float32", "Test(R) CPU", 2, "torch",
    1840.0, "not dropped", {"torch": "2.13"},
)  # fmt: skip


def passage_text(rng: random.Random, sentences: int) -> str:
    """Returns plausible filler of about 15 tokens a sentence."""
    return " ".join(
        f"In {rng.randint(1880, 1960)} {rng.choice(NAMES)} {rng.choice(VERBS)} {rng.choice(THINGS)} and {rng.choice(VERBS)} it."
        for _ in range(sentences)
    )


def harbour_scenario(num_passages: int = 12, sentences: int = 15) -> Scenario:
    """Returns twelve fictional passages with two questions."""
    rng = random.Random(7)
    answer = "The tidal gate of Orsund was designed by Ilka Brandt in 1907."
    texts = [passage_text(rng, sentences) for _ in range(num_passages)]
    texts[0] = f"{answer} {texts[0]}"
    passages = tuple(Passage(f"p{i + 1}", TOPICS[i % len(TOPICS)], text) for i, text in enumerate(texts))
    support = (Support("p1", answer),)
    questions = (
        Question("q1", "Who designed the tidal gate of Orsund?", ("Ilka Brandt",), 1, True, support),
        Question("q2", "In which year was the tidal gate designed?", ("1907",), 1, True, support),
    )
    return Scenario("harbour", "Harbour archive", "en", "Twelve invented notes about a harbour town.", True, "CC0-1.0", passages, questions)


def injection_scenario() -> Scenario:
    """Returns passages whose titles and texts try to break out of the page."""
    passages = (
        Passage("x1", "<img src=x onerror=window.__pwned=4> ${1+1} {{value}}", INJECTION),
        Passage("x2", "العربية and 🧩", "نص عربي قصير عن الميناء. " * 8),
        Passage("x3", "One long line", "x" * 200_000),
    )
    questions = (Question("q1", f"What is {INJECTION}?", (INJECTION,), 1, True, ()),)
    return Scenario("injection", "Injection <b>test</b> ${2+2}", "mul", "Hostile text.", True, "CC0-1.0", passages, questions)


def split_tokens(text: str) -> list[str]:
    """Returns pieces that joined give the text: words with their leading space, punctuation, line ends."""
    return re.findall(r"\s?\w{1,9}|\s?[^\w\s]|\s", text)


def fake_run(request: FusionRequest, methods: tuple[str, ...] = ("full", "reuse", "qcfuse"), mode: str = "live", slow: float = 1.0) -> Run:
    """Returns a run of plausible numbers for a request; `slow` multiplies the times of all methods but full prefill."""
    pieces, borders = split_tokens("You answer from the notes below, in one short sentence.\n\n"), []
    system_len = len(pieces)
    for chunk in request.chunks:
        start = len(pieces)
        pieces += split_tokens(chunk.text + "\n")
        borders.append((start, len(pieces)))
    question_start, own = len(pieces), split_tokens(request.question)
    pieces += ["Question:", *own, "\n", "Answer:"]
    rng = np.random.default_rng(request.seed)
    spans = _answer_spans(request, borders)
    asked = np.random.default_rng(zlib.crc32(request.question.encode()))
    num_doc = question_start - system_len
    scores = (rng.lognormal(-9.5, 1.2, num_doc) * asked.lognormal(0, 0.6, num_doc)).astype(np.float32)
    for start, stop in spans:
        scores[start - system_len : stop - system_len] *= 60
    layout = _Layout(request, len(pieces), system_len, question_start, scores, rng, borders)
    source = replace(PROVENANCE, mode=mode, created="2026-11-28 14:03 UTC" if mode == "replay" else "2026-11-29 10:00 UTC")
    copied = {
        name: getattr(request, name)
        for name in ("scenario", "question", "gold_answers", "ratio", "chunk_context", "max_new_tokens", "temperature", "seed")
    }
    return Run(
        **copied, provenance=source, num_layers=NUM_LAYERS, tokens=tuple(pieces), token_ids=np.arange(len(pieces), dtype=np.int32),
        system_len=system_len, question_start=question_start, question_span=(question_start + 1, question_start + 1 + len(own)),
        answer_spans=spans, chunks=layout.chunks(), methods=tuple(layout.method(name, slow) for name in methods),
    )  # fmt: skip


def _answer_spans(request: FusionRequest, borders: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    spans = []
    for chunk_id, text in request.supporting:
        for chunk, (start, _) in zip(request.chunks, borders, strict=True):
            if chunk.chunk_id == chunk_id and text in chunk.text:
                before = len(split_tokens(chunk.text[: chunk.text.index(text)]))
                spans.append((start + before, start + before + len(split_tokens(text))))
    return tuple(spans)


@dataclass
class _Layout:
    request: FusionRequest
    num_tokens: int
    system_len: int
    question_start: int
    scores: np.ndarray
    rng: np.random.Generator
    borders: list[tuple[int, int]]

    def chunks(self) -> tuple[RunChunk, ...]:
        """Returns the chunks where they stand; every fourth was computed for this run."""
        return tuple(
            RunChunk(
                c.chunk_id, c.title, f"{i:012x}", a, b, c.relevance, "disk" if i % 4 else "computed", (b - a) * KV_BYTES, 0.0011 * (b - a)
            )
            for i, (c, (a, b)) in enumerate(zip(self.request.chunks, self.borders, strict=True))
        )

    def method(self, name: str, slow: float) -> MethodRun:
        """Returns one method's part; its time grows with the rows computed."""
        base, num_doc = name.split("+")[0], self.question_start - self.system_len
        question = np.arange(self.question_start, self.num_tokens)
        plain = base == "full" or base in PICK_NOTHING
        order = None if plain else self._order(name)
        scores = None if plain or base in WITHOUT_SCORES else order
        ranking = None if order is None else (np.argsort(-order, kind="stable") + self.system_len).astype(np.int32)
        picked = [] if ranking is None else ranking[: budget(self.request.ratio, num_doc)]
        rows = np.arange(self.num_tokens) if name == "full" else np.sort(np.concatenate([picked, question])).astype(np.int64)
        times = _times(base, len(rows), slow)
        repeats = tuple(float(sum(times.values()) * f) for f in self.rng.uniform(0.96, 1.06, self.request.repeats))
        share = len(rows) / self.num_tokens
        gold = self.request.gold_answers[0] if self.request.gold_answers else "not written down"
        curve = np.linspace(0, 1, NUM_LAYERS)[:, None] ** 0.5 * np.array([[0.21, 0.34]]) * (1 - share) * _spread(name)
        good = share > 0.2
        return MethodRun(
            method=name, params={} if plain else {"ratio": self.request.ratio}, rows=rows.astype(np.int32), ranking=ranking,
            scores=scores, critical_layers=LAYERS_READ.get(base, ()),
            anchors=self._anchors() if base.startswith("qcfuse") else None, spans=_spans(times, name), ttft_s=float(np.median(repeats)),
            ttft_repeats_s=repeats, parts_s=TtftParts(**times), loaded_bytes=0 if name == "full" else num_doc * KV_BYTES,
            num_cache_hits=0 if name == "full" else num_doc - (len(rows) - len(question)),
            answer=f"It was {gold}." if good else "The harbour master closed it.", answer_ids=np.arange(8 if good else 7, dtype=np.int32),
            token_times_s=np.linspace(0.1, 0.5, 8, dtype=np.float32),
            kv_distance=None if base in ("full", "ape") else curve.astype(np.float32),
            quality=Quality(
                float(good), 0.9 if good else 0.1, 0.4 + 2 * (1 - share) ** 3, 0.3 * (1 - share) * _spread(name), None if good else 1, share
            ),
            chunk_context=next((c for c in CHUNK_CONTEXTS if name.endswith(f"+{c}")), self.request.chunk_context),
            layer_rows=np.array([self.num_tokens, *[len(rows)] * (NUM_LAYERS - 1)], dtype=np.int32) if base in RUN_LAYER_0 else None,
        )  # fmt: skip

    def _order(self, name: str) -> np.ndarray:
        """Returns what a method ranks by: the question's scores for QCFuse, with its own noise for the others, or no question at all."""
        base = name.split("+")[0]
        own = np.random.default_rng(zlib.crc32(base.encode()))
        if base == "qcfuse":
            return self.scores
        if base == "epic":
            return np.concatenate([-np.arange(b - a) / (b - a) for a, b in self.borders]).astype(np.float32)
        if base in LAYERS_READ:
            return (self.scores * own.lognormal(0, 0.8, len(self.scores))).astype(np.float32)
        return own.lognormal(-9.5, 1.3, len(self.scores)).astype(np.float32)

    def _anchors(self) -> np.ndarray:
        own = [np.arange(a, b)[self.rng.permutation(b - a)[: -(-(b - a) // 10)]] for a, b in self.borders]
        return np.sort(np.concatenate(own))[None].repeat(2, axis=0).astype(np.int32)


def _spread(name: str) -> float:
    """Returns 1 for the plain three, another factor from 0.7 to 1.3 for every other name."""
    return 1.0 if name in ("full", "reuse", "qcfuse") else 0.7 + zlib.crc32(name.encode()) % 61 / 100


def _times(name: str, num_rows: int, slow: float) -> dict[str, float]:
    work = 0.00104 * num_rows + 0.02
    if name == "full":
        return {"probe": 0.0, "select": 0.0, "load_wait": 0.0, "recompute": work, "head": 0.012}
    probe = (0.06, 0.008) if name not in PICK_NOTHING else (0.0, 0.0)
    return {"probe": probe[0] * slow, "select": probe[1] * slow, "load_wait": 0.031 * slow, "recompute": work * slow, "head": 0.012}


def _spans(times: dict[str, float], name: str) -> tuple[Span, ...]:
    spans, clock = [], 0.0
    for stage in ("probe", "select"):
        if times[stage]:
            spans.append(Span("device", stage, CRITICAL_LAYER if stage == "select" else -1, clock, clock + times[stage]))
            clock += times[stage]
    if name != "full":
        spans.append(Span("device", "load_wait", 1, clock, clock + times["load_wait"]))
        step = times["load_wait"]
        spans += [
            Span("disk", "load", layer, clock + (layer - 1) * step * 0.4, clock + (layer - 1) * step * 0.4 + step * 0.38, 3_400_000)
            for layer in range(1, NUM_LAYERS)
        ]
        clock += times["load_wait"]
    step = times["recompute"] / NUM_LAYERS
    spans += [Span("device", "recompute", layer, clock + layer * step, clock + (layer + 1) * step) for layer in range(NUM_LAYERS)]
    if name.endswith("+k_shift"):
        spans += [
            Span("device", "correct", layer, clock + (layer + 0.6) * step, clock + (layer + 1) * step) for layer in range(1, NUM_LAYERS)
        ]
    clock += times["recompute"]
    spans.append(Span("device", "head", -1, clock, clock + times["head"]))
    return tuple(spans)


def example_request(**changes: object) -> FusionRequest:
    """Returns the first question of the harbour scenario."""
    return harbour_scenario().request("q1", **changes)


def large_run(num_tokens: int = 10_000, num_layers: int = 36) -> Run:
    """Returns a run of about `num_tokens` prompt tokens and `num_layers` layers."""
    per_chunk = num_tokens // 20
    chunks = tuple(Chunk(f"c{i}", f"Chunk {i}", ("word " * per_chunk).strip()) for i in range(20))
    return replace(fake_run(FusionRequest("Which word?", chunks, repeats=3)), num_layers=num_layers)
