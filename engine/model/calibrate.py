"""`python -m engine.model.calibrate`: finds the layers whose question attention points at the answer.

Every layer is scored by Recall@10 % of the answer's tokens (arXiv 2606.05875, 3.2.3) over samples whose answer spans
are known. On small models recall alone is a weak guide, so layers that tie with the best within its noise are
told apart by what counts in the end: KL to full prefill when their choice is recomputed. An entry point: it composes
the engine as app.py does, and nothing imports it.
"""

import argparse
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import torch

from engine.bench.data import Sample, load_samples, padded
from engine.bench.report import print_json, print_table
from engine.compare import Comparison
from engine.errors import BadRequest, EngineError
from engine.fusion.full import FullPrefill
from engine.fusion.probe import context_scores, run_probe
from engine.fusion.qcfuse import QCFuse
from engine.model.calibration import Calibration, LayerScore, calibration_path
from engine.runtime import Prepared, Runtime, load_runtime
from engine.settings import Settings
from engine.types import FusionRequest, budget

SHARE, ANCHOR_RATIO = 0.10, 0.10


class Profile(NamedTuple):
    """recall: [n, L]; kl: [n, number of candidates] at the candidate layers."""

    recall: np.ndarray
    candidates: tuple[int, ...]
    kl: np.ndarray


def main(argv: list[str] | None = None) -> int:
    """Calibrates a model and files the table; returns 0, or 2 with one sentence where the call is at fault."""
    parser = argparse.ArgumentParser(prog="python -m engine.model.calibrate", description="Find a model's critical layers.")
    parser.add_argument("--model", help="bundled, a hub id or a local path; FUSESCOPE_MODEL otherwise")
    parser.add_argument("--data", default="generated", help="comma-separated: generated, scenarios, JSONL paths")
    parser.add_argument("--n", type=int, default=16, help="samples of each set")
    parser.add_argument("--pad-to", type=int, default=0, help="mix in chunks of other samples up to this many document tokens")
    parser.add_argument("--ratio", type=float, default=0.10, help="recompute ratio at which KL decides between layers")
    parser.add_argument("--most", type=int, default=6, help="candidates that KL is measured for")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder of the table; the cache folder otherwise")
    args = parser.parse_args(argv)
    try:
        settings = Settings.from_env()
        runtime = load_runtime(args.model or settings.model, settings)
        samples = [sample for source in args.data.split(",") for sample in load_samples(source, args.n, args.seed, with_spans=True)]
        samples = padded(samples, lambda chunk: len(runtime.prompts.chunk(chunk)), args.pad_to, args.seed)
        profile = _profile(runtime, samples, args.ratio, args.most)
        table = _table(runtime, profile, args)
        folder = args.out or settings.cache_dir / "calibration"
        folder.mkdir(parents=True, exist_ok=True)
        path = calibration_path(folder, runtime.model.spec.name)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=1))
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    _print(table, path)
    return 0


@torch.inference_mode()
def _profile(runtime: Runtime, samples: Sequence[Sample], ratio: float, most: int) -> Profile:
    layers = tuple(range(1, runtime.model.spec.num_layers))
    recalls, ready = [], []
    for i, sample in enumerate(samples):
        request = FusionRequest(sample.question, sample.chunks, gold_answers=sample.answers, supporting=sample.supporting, max_new_tokens=1)
        try:
            prepared = runtime.prepare(request)
        except BadRequest as error:
            print(f"left out {sample.sample_id}: {error}", file=sys.stderr)
            continue
        recalls.append(_recalls(runtime, request, prepared, layers))
        ready.append(request)
        print(f"recall {i + 1}/{len(samples)}", file=sys.stderr)
    recall = np.asarray(recalls)
    candidates = _candidates(recall, layers, most)
    methods = {"full": FullPrefill()} | {str(layer): QCFuse(ratio=ratio, critical_layer=layer) for layer in candidates}
    kl = []
    for i, request in enumerate(ready):
        # Prepared anew: a bounded store may have dropped the chunks of the first samples by now.
        run = Comparison(runtime, request, runtime.prepare(request)).run(methods)
        kl.append([run.method(str(layer)).quality.kl_to_full for layer in candidates])
        print(f"KL {i + 1}/{len(ready)}", file=sys.stderr)
    padded = np.concatenate([np.full((len(recall), 1), np.nan), recall], axis=1)
    return Profile(padded, candidates, np.asarray(kl))


def _recalls(runtime: Runtime, request: FusionRequest, prepared: Prepared, layers: tuple[int, ...]) -> list[float]:
    """Returns Recall@10 % of the sample's answer tokens at every layer."""
    prompt = prepared.prompt
    context = runtime.pipeline.selection(prompt, prepared.placed[request.chunk_context], runtime.pool.get("method", prompt.num_tokens + 64))
    index = {chunk.chunk_id: i for i, chunk in enumerate(request.chunks)}
    gold = {
        position
        for chunk_id, text in request.supporting
        for start, stop in prompt.spans_of(index[chunk_id], text)
        for position in range(start, stop)
    }
    found = []
    try:
        for probe in run_probe(context, layers, ANCHOR_RATIO, "high"):
            scores = context_scores(context, probe, "mean")
            best = runtime.decoder.ops.rank_tokens(scores)[: budget(SHARE, prompt.num_doc_tokens)]
            found.append(len(gold & set((best + prompt.system_len).tolist())) / len(gold))
    finally:
        context.loader.close()
    return found


def _candidates(recall: np.ndarray, layers: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Returns the layers whose recall ties with the best within one standard error of the paired difference."""
    mean = recall.mean(axis=0)
    best = int(mean.argmax())
    gap = recall[:, best, None] - recall
    noise = gap.std(axis=0, ddof=1) / np.sqrt(len(recall))
    tied = [i for i in np.argsort(-mean) if gap.mean(axis=0)[i] <= noise[i] or i == best]
    return tuple(layers[i] for i in tied[:most])


def _table(runtime: Runtime, profile: Profile, args: argparse.Namespace) -> Calibration:
    num = len(profile.recall)
    mean_kl = profile.kl.mean(axis=0)
    order = [profile.candidates[i] for i in np.argsort(mean_kl)]
    kl = {layer: (float(profile.kl[:, i].mean()), _error(profile.kl[:, i])) for i, layer in enumerate(profile.candidates)}
    scores = tuple(
        LayerScore(layer, float(profile.recall[:, layer].mean()), _error(profile.recall[:, layer]), *kl.get(layer, (None, None)))
        for layer in range(1, runtime.model.spec.num_layers)
    )
    sets = ", ".join(Path(part).name for part in args.data.split(","))
    length = f", chunks mixed to {args.pad_to:,} document tokens" if args.pad_to else ""
    return Calibration(
        model=runtime.model.spec.name,
        layers=tuple(order),
        origin="measured",
        note=f"Recall@10 % of answer tokens on {sets} (n={num}{length}); ties within one standard error by KL to full prefill "
        f"at r={args.ratio:g}.",
        created=datetime.date.today().isoformat(),
        num_samples=num,
        scores=scores,
    )


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _print(table: Calibration, path: Path) -> None:
    print_table(
        ("layer", "recall@10 %", "± se", "KL to full", "± se"),
        [
            (s.layer, f"{s.recall:.3f}", f"{s.recall_se:.3f}", *(f"{v:.4f}" if v is not None else "-" for v in (s.kl, s.kl_se)))
            for s in table.scores
        ],
    )
    print(f"critical layers, best first: {', '.join(map(str, table.layers))}; filed as {path}")
    print_json({"calibrate": table.model, "path": str(path), "rows": msgspec.to_builtins(table.scores), "layers": list(table.layers)})


if __name__ == "__main__":
    sys.exit(main())
