"""`python -m engine.bench fuse|prefill|record|validate|readme [options]`."""

import sys

from engine.errors import EngineError


def main(argv: list[str]) -> int:
    """Runs one benchmark by name; returns the exit status, 2 where the call or its data is at fault, 130 where it was stopped."""
    from engine.bench import fuse, prefill, readme, record, validate

    benches = {"fuse": fuse.main, "prefill": prefill.main, "record": record.main, "validate": validate.main, "readme": readme.main}
    if not argv or argv[0] not in benches:
        print(f"usage: python -m engine.bench {{{','.join(benches)}}} [options]; --help after a name lists its options", file=sys.stderr)
        return 0 if argv and argv[0] in ("-h", "--help") else 2
    try:
        benches[argv[0]](argv[1:])
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
