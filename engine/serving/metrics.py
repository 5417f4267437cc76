"""Numbers for Prometheus: what requests came to, and how full queue and caches are. Holds no text and no name of a visitor."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from engine.chat.types import ChatTurn
from engine.errors import EngineError
from engine.serving.door import ServedSession
from engine.types import MethodRun, Run

TTFT_BUCKETS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)


class Metrics:
    """Counts a session's outcomes in a registry of its own, so that two sessions in one process do not mix."""

    def __init__(self, session: ServedSession) -> None:
        self.registry = CollectorRegistry()
        self._ttft = Histogram(
            "fusescope_ttft_seconds", "Engine time to the first token.", ["method"], buckets=TTFT_BUCKETS_S, registry=self.registry
        )
        self._prompts = Counter(
            "fusescope_prompt_tokens",
            "Tokens of the prompts that were answered: what hit tokens are a share of.",
            ["method"],
            registry=self.registry,
        )
        self._hits = Counter(
            "fusescope_hit_tokens", "Prompt tokens whose KV was read, by the cache it came from.", ["cache"], registry=self.registry
        )
        self._computed = Counter(
            "fusescope_recomputed_tokens",
            "Document tokens that were computed though a stored KV was there.",
            ["method"],
            registry=self.registry,
        )
        self._answers = Counter("fusescope_answer_tokens", "Tokens of answers.", registry=self.registry)
        self._errors = Counter("fusescope_errors", "Requests that ended in a sentence, by its kind.", ["kind"], registry=self.registry)
        self.registry.register(_State(session))
        ProcessCollector(registry=self.registry)
        session.outcomes.listen(self.count)

    def count(self, outcome: object) -> None:
        """Counts a Run, a ChatTurn or an EngineError; passes anything else over."""
        match outcome:
            case Run():
                for method in outcome.methods:
                    self._count_method(outcome, method)
            case ChatTurn():
                self._count_turn(outcome)
            case EngineError():
                self._errors.labels(type(outcome).__name__).inc()

    def text(self) -> bytes:
        """Returns everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def _count_method(self, run: Run, method: MethodRun) -> None:
        self._ttft.labels(method.method).observe(method.ttft_s)
        self._prompts.labels(method.method).inc(len(run.tokens))
        self._hits.labels("chunk").inc(method.num_cache_hits)
        self._computed.labels(method.method).inc(run.num_doc_tokens - method.num_cache_hits)
        self._answers.inc(len(method.answer_ids))

    def _count_turn(self, turn: ChatTurn) -> None:
        self._ttft.labels(turn.method).observe(turn.ttft_s)
        self._prompts.labels(turn.method).inc(turn.num_prompt_tokens)
        self._hits.labels("prefix").inc(turn.num_prefix_hits)
        self._hits.labels("chunk").inc(turn.num_fused_loaded)
        self._computed.labels(turn.method).inc(turn.num_recomputed)
        self._answers.inc(turn.num_answer_tokens)


class _State(Collector):
    """Reads what is so at the moment of a scrape."""

    def __init__(self, session: ServedSession) -> None:
        self._session = session

    def describe(self) -> Iterator[Metric]:
        """Yields nothing: names are told with the values."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yields the gauges."""
        yield GaugeMetricFamily("fusescope_queue_length", "Requests that wait for the engine.", self._session.num_waiting)
        yield GaugeMetricFamily("fusescope_ready", "1 once the model is there.", float(self._session.health().state == "ready"))
        stats = self._session.prefix_stats()
        if stats is None:
            return
        held = GaugeMetricFamily("fusescope_prefix_blocks", "Blocks in the prefix cache, by queue.", labels=["queue"])
        kinds = GaugeMetricFamily("fusescope_prefix_blocks_by_type", "Blocks in the prefix cache, by token type.", labels=["type"])
        left = CounterMetricFamily(
            "fusescope_prefix_evictions",
            "Blocks that left the prefix cache to make room, by the queue that gave them up.",
            labels=["reason"],
        )
        for family, counts in ((held, stats.queues), (kinds, stats.kinds), (left, stats.evicted)):
            for name, count in counts.items():
                family.add_metric([name], count)
        yield from (held, kinds, left)
        yield GaugeMetricFamily("fusescope_prefix_capacity_blocks", "Blocks that the prefix cache may hold.", stats.capacity_blocks)
