"""Cache runs as files, checked on the way in."""

from pathlib import Path

from engine.cache_types import KIND_NAMES, MISS_NAMES, QUEUE_NAMES, CacheRun
from engine.errors import BadRunFile
from engine.packedfile import PackedFile

FORMAT = "fusescope-cache/1"
_DTYPES = ("int32", "int64", "float32", "float64", "uint8", "bool")
_FILE = PackedFile(FORMAT, CacheRun, "cache run", ".cache.json.gz", _DTYPES, 64 * 2**20, 512 * 2**20)


def dump_cache_run(run: CacheRun) -> bytes:
    """Returns a run as the bytes of a `fusescope-cache/1` file; the same run gives the same bytes."""
    return _FILE.dump(run)


def save_cache_run(run: CacheRun, path: Path) -> None:
    """Writes a run file; a half-written one never stands under its name."""
    _FILE.save(run, path)


def load_cache_run(path: Path) -> CacheRun:
    """Returns the run of a file. Raises BadRunFile with one sentence."""
    run = _FILE.load(path)
    _check(run)
    return run


def parse_cache_run(data: bytes) -> CacheRun:
    """Returns the run that `dump_cache_run` wrote, checked for version, types and sizes. Raises BadRunFile with one sentence."""
    run = _FILE.parse(data)
    _check(run)
    return run


def _check(run: CacheRun) -> None:
    num, moments = run.num_requests, len(run.snapshots.request)
    shapes = {
        **{name: ((num,), getattr(run.requests, name)) for name in run.requests.__dataclass_fields__ if name != "missed_tokens"},
        "missed_tokens": ((num, len(MISS_NAMES)), run.requests.missed_tokens),
        **{f"evictions.{name}": ((len(run.evictions.block),), getattr(run.evictions, name)) for name in run.evictions.__dataclass_fields__},
        "queues": ((moments, len(QUEUE_NAMES)), run.snapshots.queues),
        "kinds": ((moments, len(KIND_NAMES)), run.snapshots.kinds),
        "weights": ((moments, len(run.snapshots.weight_names)), run.snapshots.weights),
        "num_hit": (run.ages.upper_s.shape, run.ages.num_hit),
        "num_evicted": (run.ages.upper_s.shape, run.ages.num_evicted),
    }
    for name, (shape, values) in shapes.items():
        if values.shape != shape:
            raise BadRunFile(f"The cache run has {name} of {values.shape}; {shape} are needed.")
    if run.limit_hit_blocks is not None and run.limit_hit_blocks.shape != (num,):
        raise BadRunFile(f"The cache run has the limit for {len(run.limit_hit_blocks)} requests; it has {num}.")
    for name, values, stop in (
        ("evictions", run.evictions.request, num),
        ("suffered requests", run.evictions.suffered, num),
        ("token types", run.evictions.kind, len(KIND_NAMES)),
        ("queues", run.evictions.queue, len(QUEUE_NAMES)),
        ("snapshots", run.snapshots.request, num),
    ):
        if len(values) and not -1 <= int(values.min()) <= int(values.max()) < stop:
            raise BadRunFile(f"The cache run has {name} outside 0 to {stop - 1}.")
