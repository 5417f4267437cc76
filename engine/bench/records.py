"""What is kept of one measured sample: everything that rows, comparisons and costs are computed from, and no more."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from engine.bench.configs import FULL
from engine.bench.data import Sample
from engine.bench.work import Work
from engine.types import MethodRun, Run, RunChunk


@dataclass(frozen=True, slots=True)
class MethodRecord:
    """One method at one ratio on one sample; what was not measured is None.

    Args:
        label: the name inside the run, such as "qcfuse@0.1".
        context: what the chunks had seen that it read, "" for full prefill, which reads none.
        parts_s: seconds by what the device was doing.
        rows_share: computed token-layers over all of the prompt.
        kv_keys, kv_values: relative distance to full prefill's, mean over layers from 1 on (layer 0 is exact).
        answered: a gold answer stands in the answer; same_answer: it equals full prefill's token for token.
        answer: None where none was written.
        work_share: of full prefill's floating point operations, without the probe's.
    """

    label: str
    context: str
    ttft_s: float
    parts_s: dict[str, float]
    loaded_bytes: int
    rows_share: float
    kv_keys: float | None
    kv_values: float | None
    rouge_l: float | None
    f1: float | None
    exact_match: bool | None
    answered: bool | None
    same_answer: bool | None
    gold_nll: float | None
    kl_to_full: float | None
    span_recall: float | None
    answer: str | None
    work_share: float | None = None


@dataclass(frozen=True, slots=True)
class Build:
    """What the chunk caches of one context cost for the sample: seconds (None where not known), document tokens, bytes."""

    build_s: float | None
    num_tokens: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """One sample; `index` is its place in the list that was asked for, disk_* sum up its reads of stored KV."""

    index: int
    sample_id: str
    is_yes_no: bool
    num_doc_tokens: int
    num_question_tokens: int
    methods: tuple[MethodRecord, ...]
    builds: dict[str, Build]
    disk_bytes: int
    disk_s: float
    commit: str

    def method(self, label: str) -> MethodRecord:
        """Returns the record of a method that was run."""
        return next(method for method in self.methods if method.label == label)


def record_of(
    index: int, sample: Sample, run: Run, chunks: Mapping[str, Sequence[RunChunk]], generate: frozenset[str] | None, work: Work
) -> SampleRecord:
    """Returns what is kept of a run.

    Args:
        chunks: by context, the chunks whose caches were prepared.
        generate: labels of the methods that wrote an answer, None for all.
        work: what the model's layers take.
    """
    reads = [span for method in run.methods for span in method.spans if span.lane == "disk" and span.size_bytes]
    return SampleRecord(
        index=index,
        sample_id=sample.sample_id,
        is_yes_no=sample.is_yes_no,
        num_doc_tokens=run.num_doc_tokens,
        num_question_tokens=len(run.tokens) - run.question_start,
        methods=tuple(_method(run, method, generate is None or method.method in generate, work) for method in run.methods),
        builds={context: _build(own, run.num_doc_tokens) for context, own in chunks.items()},
        disk_bytes=sum(span.size_bytes for span in reads),
        disk_s=sum(span.end_s - span.start_s for span in reads),
        commit=run.provenance.commit,
    )


def _method(run: Run, method: MethodRun, written: bool, work: Work) -> MethodRecord:
    quality, distance = method.quality, method.kv_distance
    total = len(run.tokens) * run.num_layers
    computed = int(method.layer_rows.sum()) if method.layer_rows is not None else len(method.rows) * run.num_layers
    keys, values = (None, None) if distance is None else (float(mean) for mean in distance[1:].mean(axis=0))
    # Token for token equal or not says nothing where full prefill was not run beside it.
    compared = written and run.method(FULL) is not None
    return MethodRecord(
        label=method.method,
        context="" if method.method == FULL else method.chunk_context,
        ttft_s=method.ttft_s,
        parts_s=asdict(method.parts_s),
        loaded_bytes=method.loaded_bytes,
        rows_share=computed / total,
        kv_keys=keys,
        kv_values=values,
        rouge_l=quality.rouge_l if written else None,
        f1=quality.f1 if written else None,
        exact_match=quality.exact_match if written else None,
        answered=quality.contains_gold if written else None,
        same_answer=quality.first_diverging_token is None if compared else None,
        gold_nll=quality.gold_nll,
        kl_to_full=quality.kl_to_full,
        span_recall=quality.span_recall,
        answer=method.answer if written else None,
        work_share=work.share(run, method),
    )


def _build(chunks: Sequence[RunChunk], num_tokens: int) -> Build:
    seconds = [chunk.precompute_s for chunk in chunks]
    return Build(sum(seconds) if all(seconds) else None, num_tokens, sum(chunk.size_bytes for chunk in chunks))


class Columns:
    """The records of a benchmark by method and metric, in one order of samples, so that differences are paired."""

    def __init__(self, records: Sequence[SampleRecord]) -> None:
        self.records = records
        self._methods = {method.label: [record.method(method.label) for record in records] for method in records[0].methods}

    def methods(self, label: str) -> list[MethodRecord]:
        """Returns the records of one method."""
        return self._methods[label]

    def of(self, label: str, metric: str) -> np.ndarray:
        """Returns float64 [n] of a field of MethodRecord, not a number where it was not measured."""
        values = (getattr(method, metric) for method in self._methods[label])
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
