"""`python -m engine.model.calibrate`: finds the layers whose question attention points at the answer.

Every layer is scored by Recall@10 % of the answer's tokens (arXiv 2606.05875, 3.2.3) over samples whose answer spans are
known, and many by KL to full prefill when their choice is recomputed; `engine.tuning.layer_choice` says how both decide. The
table is filed in the cache folder, where it is used from then on. An entry point: it composes the engine as app.py does, and
nothing imports it.
"""

import argparse
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from engine.bench.report import print_json, print_table
from engine.errors import EngineError
from engine.model.calibration import Calibration, LayerScore, calibration_path
from engine.runtime import Runtime, load_runtime
from engine.settings import Settings
from engine.tuning.data import TuningSet, add_arguments, load_sets
from engine.tuning.layer_choice import candidate_layers, kl_rule
from engine.tuning.layer_profile import Profile, profile_layers
from engine.tuning.pooled import pooled_error, pooled_mean


def main(argv: list[str] | None = None) -> int:
    """Calibrates a model and files the table; returns 0, or 2 with one sentence where the call is at fault."""
    parser = argparse.ArgumentParser(prog="python -m engine.model.calibrate", description="Find a model's critical layers.")
    add_arguments(parser, num=16)
    parser.add_argument("--ratio", type=float, default=0.10, help="recompute ratio at which KL decides between layers")
    parser.add_argument(
        "--kl",
        default="every:2",
        help="layers whose KL is measured: all, tied (those that recall leaves), or beside these every:K-th or the best:K by recall",
    )
    parser.add_argument("--by", default="recall", choices=("recall", "kl"), help="recall, ties by KL (the papers' criterion), or KL alone")
    parser.add_argument("--out", type=Path, help="folder of the table; the cache folder otherwise")
    args = parser.parse_args(argv)
    try:
        kl_rule(args.kl)
        settings = Settings.from_env()
        runtime = load_runtime(args.model or settings.model, settings)
        sets = load_sets(args, lambda chunk: len(runtime.prompts.chunk(chunk)))
        profile = profile_layers(runtime, sets, args.ratio, args.kl)
        table = _table(runtime, sets, profile, args.ratio, args.by)
        folder = args.out or settings.cache_dir / "calibration"
        folder.mkdir(parents=True, exist_ok=True)
        path = calibration_path(folder, runtime.model.spec.name)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=1))
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    _print(table, sets, profile, path)
    return 0


def _table(runtime: Runtime, sets: Sequence[TuningSet], profile: Profile, ratio: float, by: str) -> Calibration:
    recall, recall_se = pooled_mean(profile.recall), pooled_error(profile.recall)
    kl = dict(zip(profile.kl_layers, zip(pooled_mean(profile.kl).tolist(), pooled_error(profile.kl).tolist(), strict=True), strict=True))
    means = {layer: mean for layer, (mean, _) in kl.items()}
    by_recall = candidate_layers(profile.recall, profile.layers).chosen(means)
    order = by_recall if by == "recall" else tuple(sorted(means, key=means.__getitem__))
    rule = (
        f"ties within two standard errors by KL to full prefill at r={ratio:g}. KL alone: {_lowest(profile)}."
        if by == "recall"
        else f"chosen by KL to full prefill at r={ratio:g} among the layers it was measured for. Recall, ties by KL: {_named(by_recall)}."
    )
    return Calibration(
        model=runtime.model.spec.name,
        layers=order,
        origin="measured",
        note=f"Recall@10 % of answer tokens on {', '.join(tuning.label for tuning in sets)}, each set of equal weight; {rule}",
        created=datetime.date.today().isoformat(),
        num_samples=sum(map(len, profile.recall)),
        num_layers=runtime.model.spec.num_layers,
        scores=tuple(
            LayerScore(layer, float(recall[i]), float(recall_se[i]), *kl.get(layer, (None, None))) for i, layer in enumerate(profile.layers)
        ),
    )


def _lowest(profile: Profile) -> str:
    """Returns the three layers of lowest KL, best first."""
    order = np.argsort(pooled_mean(profile.kl), kind="stable")[:3]
    return _named([profile.kl_layers[i] for i in order])


def _named(layers: Sequence[int]) -> str:
    return ", ".join(map(str, layers))


def _print(table: Calibration, sets: Sequence[TuningSet], profile: Profile, path: Path) -> None:
    print_table(
        ("layer", "recall@10 %", "± se", "KL to full", "± se"),
        [
            (s.layer, f"{s.recall:.3f}", f"{s.recall_se:.3f}", *(f"{v:.4f}" if v is not None else "-" for v in (s.kl, s.kl_se)))
            for s in table.scores
        ],
    )
    best, first = int(pooled_mean(profile.kl).argmin()), profile.kl_layers.index(table.layers[0])
    gaps = [values[:, first] - values[:, best] for values in profile.kl]
    print(f"critical layers, best first: {', '.join(map(str, table.layers))}; filed as {path}")
    print(
        f"by KL alone: {_lowest(profile)}; KL of layer {table.layers[0]} minus that of {profile.kl_layers[best]}: "
        f"{pooled_mean(gaps):+.4f} ± {pooled_error(gaps):.4f} (standard error, paired)"
    )
    print_json(
        {
            "calibrate": table.model,
            "path": str(path),
            "rows": msgspec.to_builtins(table.scores),
            "layers": list(table.layers),
            "kl_layers": list(profile.kl_layers),
            "sets": [
                {"set": tuning.label, "recall": recall.mean(axis=0).tolist(), "kl": kl.mean(axis=0).tolist()}
                for tuning, recall, kl in zip(sets, profile.recall, profile.kl, strict=True)
            ],
        }
    )


if __name__ == "__main__":
    sys.exit(main())
