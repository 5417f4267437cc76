"""`python -m engine.prefix.train_rule`: fits the logistic rule on generated workloads and logs, and files it with its card.

Sessions are parted: of every workload two of three are fitted on, the third is held out. An entry point; nothing imports it.
"""

import argparse
import datetime
import shlex
import sys
from pathlib import Path

import msgspec
import numpy as np

from engine.bench.report import print_json, print_table
from engine.errors import BadRequest, EngineError
from engine.prefix.predictor_rule import COMMAND, FEATURES, SHIPPED, SessionRule, features, fit
from engine.prefix.predictor_scores import LIKELY, baseline_accuracy, calibration_error, scores
from engine.prefix.workloads.catalog import is_generated, load_workload
from engine.prefix.workloads.workload import Workload

# Beyond the seeds that benchmarks and the page draw.
FIRST_SEED, TEST_EVERY = 1_000, 3


def main(argv: list[str] | None = None) -> int:
    """Fits and files a rule; returns 0, or 2 with one sentence where the call or its data is at fault."""
    args = _parser().parse_args(argv)
    try:
        if args.seeds < 1:
            raise BadRequest(f"--seeds is {args.seeds}; give at least one.")
        workloads = [
            load_workload(name, FIRST_SEED + seed)
            for name in args.data.split(",")
            for seed in range(args.seeds if is_generated(name) else 1)
        ]
        command = shlex.join(COMMAND.split() + (sys.argv[1:] if argv is None else argv))
        rule = fitted(workloads, _described(args.data, args.seeds), command)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_bytes(msgspec.json.format(msgspec.json.encode(rule), indent=1) + b"\n")
    if not args.json:
        names = ("accuracy", "always the more frequent", "F1", "MCC", "calibration error")
        values = (rule.accuracy, rule.baseline_accuracy, rule.f1, rule.mcc, rule.calibration_error)
        print_table(names, [[f"{value:.3f}" for value in values]])
        print(f"written to {args.out}")
    print_json({"train": "rule", "path": str(args.out), "card": msgspec.to_builtins(rule)})
    return 0


def fitted(workloads: list[Workload], data: str, command: str) -> SessionRule:
    """Returns the rule of workloads, measured on their held-out sessions. Raises BadRequest."""
    values = np.concatenate([features(one.turn, one.num_tokens, one.is_agent) for one in workloads])
    goes_on = np.concatenate([one.goes_on for one in workloads])
    is_test = np.concatenate([one.session % TEST_EVERY == 0 for one in workloads])
    sessions = np.concatenate([one.session.astype(np.int64) + (i << 32) for i, one in enumerate(workloads)])
    if not is_test.any() or is_test.all():
        raise BadRequest(f"There are {len(np.unique(sessions))} sessions; at least {TEST_EVERY} are needed to hold some out.")
    found = fit(values[~is_test], goes_on[~is_test])
    truth, said = goes_on[is_test], found.probabilities(values[is_test])
    worth = scores(truth, said >= LIKELY)
    return SessionRule(
        features=FEATURES,
        weights=tuple(found.weights.tolist()),
        bias=found.bias,
        mean=tuple(found.mean.tolist()),
        deviation=tuple(found.deviation.tolist()),
        data=data,
        num_sessions=(len(np.unique(sessions[~is_test])), len(np.unique(sessions[is_test]))),
        num_requests=(int((~is_test).sum()), int(is_test.sum())),
        prior=float(goes_on[~is_test].mean()),
        accuracy=worth.accuracy,
        f1=worth.f1,
        mcc=worth.mcc,
        calibration_error=calibration_error(truth, said),
        baseline_accuracy=baseline_accuracy(truth),
        command=command,
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _described(data: str, num_seeds: int) -> str:
    names = [name if is_generated(name) else Path(name).name for name in data.split(",")]
    return f"{', '.join(names)} ({num_seeds} seed{'' if num_seeds == 1 else 's'} each where generated)"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=COMMAND, description="Fit the logistic rule that predicts whether a session goes on.")
    parser.add_argument("--data", default="mix,chat", help="comma-separated: generated workloads, or paths of logs")
    parser.add_argument("--seeds", type=int, default=2, help=f"of each generated workload, from {FIRST_SEED} on")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="file of the rule")
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
