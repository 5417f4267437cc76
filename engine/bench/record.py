"""Records the runs that the page opens with: the first question of every scenario, its caches computed afresh.

The first question, whatever comes out: what is shown before anybody presses Run is not picked for its result.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from engine.bench.report import print_json
from engine.chunks.store import ChunkStore
from engine.compare import compare
from engine.model.loader import load_model
from engine.runfile import save_run
from engine.runtime import Runtime
from engine.scenarios import find_scenario, load_scenarios
from engine.session import RECORDED_DIR
from engine.settings import Settings

# Ours, the papers' rule, its rivals by kind: first tokens, deviation, the whole context's attention.
METHODS = "full,reuse,epic,cacheblend,qcall,qcfuse,qcfuse+primed-mean,qcfuse_learned+primed-mean"


def main(argv: list[str]) -> None:
    """Writes one run file a scenario. Raises EngineError."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench record", description=__doc__.splitlines()[0])
    parser.add_argument("--scenarios", default="all", help="comma-separated names, or all")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--ratio", type=float, default=0.3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RECORDED_DIR)
    args = parser.parse_args(argv)
    names = list(load_scenarios()) if args.scenarios == "all" else args.scenarios.split(",")
    scenarios = [find_scenario(name) for name in names]
    args.out.mkdir(parents=True, exist_ok=True)
    settings = Settings.from_env()
    model = load_model(settings.model, settings)
    with tempfile.TemporaryDirectory() as empty:
        # A store of its own, so that the cost of every chunk's cache is measured and stands in the run.
        runtime = Runtime(model, settings, ChunkStore(Path(empty), settings.chunk_capacity_bytes))
        for scenario in scenarios:
            request = scenario.request(scenario.questions[0].id, ratio=args.ratio, repeats=args.repeats)
            run = compare(runtime, request, args.methods.split(","))
            path = args.out / f"{scenario.name}.run.json.gz"
            save_run(run, path)
            times = ", ".join(f"{m.method} {m.ttft_s:.2f} s" for m in run.methods)
            print(f"{path.name}: {times}, {path.stat().st_size / 1e3:.0f} kB", file=sys.stderr, flush=True)
    print_json({"bench": "record", "rows": [{"scenario": scenario.name} for scenario in scenarios], "out": str(args.out)})
