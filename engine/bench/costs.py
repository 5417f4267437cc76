"""What building chunk caches costs, and after how many requests it has paid off."""

import statistics
from collections.abc import Mapping, Sequence

from engine.bench.records import SampleRecord
from engine.bench.report import spread


def build_costs(records: Sequence[SampleRecord]) -> list[dict[str, object]]:
    """Returns, for every chunk context, seconds and bytes of all chunk caches of one request; each cache was built once.

    Samples with a cache whose time is not known are left out; so is a context without any sample.
    """
    found = []
    for context in dict.fromkeys(context for record in records for context in record.builds):
        builds = [record.builds[context] for record in records if context in record.builds]
        timed = [(build.build_s, build) for build in builds if build.build_s]
        if timed:
            seconds = [build_s for build_s, _ in timed]
            found.append(
                {
                    "context": context,
                    "build_s": spread(seconds),
                    "build_tokens_per_s": sum(build.num_tokens for _, build in timed) / sum(seconds),
                    "disk_mb": statistics.median(build.size_bytes for _, build in timed) / 1e6,
                    "n": len(timed),
                }
            )
    return found


def break_even(costs: Sequence[Mapping[str, object]], context: str, full_s: float, method_s: float) -> float | None:
    """Returns how many requests have to reuse a context before building its caches has paid off, None for never or not known.

    Args:
        full_s, method_s: median time to first token of full prefill and of the method.
    """
    build_s = next((cost["build_s"]["median"] for cost in costs if cost["context"] == context), None)
    return build_s / (full_s - method_s) if build_s is not None and full_s > method_s else None
