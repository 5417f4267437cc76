"""Runs methods over samples, one sample after the other, and keeps a record of each as soon as it is finished.

Every round runs all methods and ratios of a sample in turn, full prefill first: the reference of the others.
"""

import re
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

from engine.bench.configs import Config
from engine.bench.data import Sample
from engine.bench.journal import Journal, content_key
from engine.bench.progress import clock
from engine.bench.records import SampleRecord, record_of
from engine.bench.work import work_of
from engine.compare import Comparison, contexts_of
from engine.errors import BadRequest
from engine.fusion.base import FusionMethod
from engine.provenance import provenance
from engine.runfile import save_run
from engine.runtime import Prepared, Runtime
from engine.types import ChunkContext, FusionRequest


@dataclass(frozen=True, slots=True)
class Job:
    """What is measured, all told.

    Args:
        generate: labels of what writes answers, None for all.
        repeats: timed rounds a sample.
        context: what a chunk saw when its cache was computed, for methods that do not say.
    """

    samples: tuple[Sample, ...]
    configs: tuple[Config, ...]
    generate: frozenset[str] | None
    repeats: int
    max_new_tokens: int
    context: ChunkContext
    seed: int

    def methods(self) -> dict[str, FusionMethod]:
        """Returns the methods by label, in order."""
        return {config.label: config.create(self.seed) for config in self.configs}

    def request(self, sample: Sample) -> FusionRequest:
        """Returns the request of a sample. Raises BadRequest."""
        return FusionRequest(
            sample.question,
            sample.chunks,
            gold_answers=sample.answers,
            supporting=sample.supporting,
            max_new_tokens=self.max_new_tokens,
            chunk_context=self.context,
            repeats=self.repeats,
            scenario=sample.scenario,
            seed=self.seed,
        )


class LeftOut(NamedTuple):
    """A sample or a method that was not measured, and the sentence why."""

    name: str
    reason: str


class Measured(NamedTuple):
    """Records in the order of the samples, those left out, and how many records were there from before."""

    records: list[SampleRecord]
    skipped: list[LeftOut]
    resumed: int


def warm_up(runtime: Runtime, job: Job) -> list[LeftOut]:
    """Runs every method once uncounted on the first sample that fits, so that no sample pays for first use of memory.

    Returns the methods that cannot run on this model. Raises BadRequest where no sample fits.
    """
    first = None
    for sample in job.samples:
        try:
            request = replace(job.request(sample), repeats=1)
            prepared = _prepare(runtime, request, job)
            break
        except BadRequest as error:
            first = first or LeftOut(sample.sample_id, str(error))
    else:
        assert first is not None, "a job has samples"
        raise BadRequest(f"None of {len(job.samples)} samples can be measured; the first, {first.name}: {first.reason}")
    unfit = {}
    for config in job.configs:
        try:
            Comparison(runtime, request, prepared).run({config.label: config.create(job.seed)}, generate=frozenset())
        except BadRequest as error:
            unfit[config.method] = str(error)
    return [LeftOut(method, reason) for method, reason in unfit.items()]


def job_key(runtime: Runtime, job: Job) -> str:
    """Returns the name under which records of this job on this model, machine and settings are kept."""
    place = asdict(provenance(runtime))
    same = ("model", "revision", "weights", "dtype", "device", "num_threads", "page_cache")
    # Which library does the products is timed anew in every process, and may come out otherwise when a killed run goes on.
    kernel_set = place["kernels"].split(",")[0]
    return content_key(
        {name: place[name] for name in same} | {"kernels": kernel_set},
        list(runtime.calibration.layers),
        {label: repr(method) for label, method in job.methods().items()},
        None if job.generate is None else sorted(job.generate),
        [asdict(sample) for sample in job.samples],
        [job.repeats, job.max_new_tokens, job.context, job.seed],
    )


def measure(runtime: Runtime, job: Job, journal: Journal, runs: Path | None = None) -> Measured:
    """Measures the samples that the journal lacks. Says on stderr how far it is.

    Args:
        runs: folder that gets a run file of every sample; a sample without one there is measured again.
    """
    paths = [None if runs is None else runs / _file_name(i, sample) for i, sample in enumerate(job.samples)]
    done = {i for i in journal.records if paths[i] is None or paths[i].is_file()}
    if done:
        print(f"{len(done)} of {len(job.samples)} samples were finished before and are taken from there", file=sys.stderr)
    left = [i for i in range(len(job.samples)) if i not in done]
    skipped, begun = [], time.perf_counter()
    for count, i in enumerate(left, start=1):
        name = job.samples[i].sample_id
        try:
            _measure_one(runtime, job, i, journal, paths[i])
        except _Unfit as error:
            print(f"left out {name}: {error}", file=sys.stderr)
            skipped.append(LeftOut(name, str(error)))
            continue
        elapsed = time.perf_counter() - begun
        rest = elapsed / count * (len(left) - count)
        print(f"{len(done) + count}/{len(job.samples)} {name}, {clock(elapsed)}, about {clock(rest)} left", file=sys.stderr)
    return Measured([journal.records[i] for i in sorted(journal.records)], skipped, len(done))


class _Unfit(Exception):
    """A sample cannot be asked of this model; the message is the sentence why."""


def _measure_one(runtime: Runtime, job: Job, index: int, journal: Journal, path: Path | None) -> None:
    """Measures a sample and files its record, its run file first. Raises _Unfit, BadRequest and other EngineErrors."""
    sample = job.samples[index]
    try:
        request = job.request(sample)
        prepared = _prepare(runtime, request, job)
    except BadRequest as error:
        raise _Unfit(str(error)) from None
    notices = runtime.store.drain_notices()
    for notice in notices:
        print(notice, file=sys.stderr)
    # A run file shows when each token came.
    comparison = Comparison(runtime, request, prepared, are_times_read=path is not None)
    run = comparison.run(job.methods(), notices, job.generate)
    if path is not None:
        save_run(run, path)
    journal.append(record_of(index, sample, run, prepared.chunks, job.generate, work_of(runtime.decoder)))


def _prepare(runtime: Runtime, request: FusionRequest, job: Job) -> Prepared:
    return runtime.prepare(request, contexts=contexts_of(job.methods().values(), request))


def _file_name(index: int, sample: Sample) -> str:
    return f"{index:04d}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', sample.sample_id)[:60]}.run.json.gz"
