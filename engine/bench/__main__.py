"""`python -m engine.bench fuse|batch|prefill|profile|kernels|record|validate|readme|evict|live|soak|sglang [options]`."""

import importlib
import sys

from engine.errors import EngineError


def main(argv: list[str]) -> int:
    """Runs one benchmark by name; returns the exit status, 2 where the call or its data is at fault, 130 where it was stopped."""
    # Imported by name: a replay of evictions runs where torch is not installed.
    modules = {
        "fuse": "engine.bench.fuse",
        "batch": "engine.bench.batch",
        "prefill": "engine.bench.prefill",
        "profile": "engine.bench.profile",
        "kernels": "engine.bench.kernels",
        "record": "engine.bench.record",
        "validate": "engine.bench.validate",
        "readme": "engine.bench.readme",
        "evict": "engine.bench.replay",
        "live": "engine.bench.live",
        "soak": "engine.bench.soak",
        "sglang": "engine.bench.sglang",
    }
    if not argv or argv[0] not in modules:
        print(f"usage: python -m engine.bench {{{','.join(modules)}}} [options]; --help after a name lists its options", file=sys.stderr)
        return 0 if argv and argv[0] in ("-h", "--help") else 2
    try:
        importlib.import_module(modules[argv[0]]).main(argv[1:])
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
