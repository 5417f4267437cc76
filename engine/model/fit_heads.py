"""`python -m engine.model.fit_heads`: fits how much each attention head tells about what a question needs.

Per sample: what every document token's true KV would gain (`engine.model.kv_gradient`) and the attention it gets from each head
behind key-norm anchors, times the deviation of its layer-1 value, exactly as qcfuse_learned scores it; then weights that make the
second follow the first (`engine.tuning.head_fit`). An entry point: it composes the engine as app.py does, and nothing imports it.
"""

import argparse
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch

from engine.bench.data import Sample
from engine.bench.report import print_json, print_table
from engine.errors import BadRequest, EngineError
from engine.fusion.deviation import compute_layer_one
from engine.fusion.full import FullPrefill
from engine.fusion.probe import context_head_scores, run_probe
from engine.fusion.reuse import DirectReuse
from engine.model.calibration import calibration_path
from engine.model.head_weights import HeadWeights
from engine.model.kv_gradient import MixedKV, token_gains
from engine.runtime import Prepared, Runtime, load_runtime
from engine.settings import Settings
from engine.tuning.data import TuningSet, add_arguments, load_sets
from engine.tuning.head_fit import HeadSample, Selection, select_layers
from engine.types import FusionRequest

ANCHOR_RATIO = 0.10


def main(argv: list[str] | None = None) -> int:
    """Fits a model's head weights and files them; returns 0, or 2 with one sentence where the call is at fault."""
    parser = argparse.ArgumentParser(prog="python -m engine.model.fit_heads", description="Fit the head weights of qcfuse_learned.")
    add_arguments(parser, num=20)
    parser.add_argument("--out", type=Path, help="folder of the weights; the cache folder otherwise")
    args = parser.parse_args(argv)
    try:
        settings = Settings.from_env()
        runtime = load_runtime(args.model or settings.model, settings)
        sets = load_sets(args, lambda chunk: len(runtime.prompts.chunk(chunk)))
        samples = head_samples(runtime, sets)
        chosen = select_layers(samples, lambda text: print(text, file=sys.stderr))
        weights = _weights(runtime.model.spec.name, sets, chosen)
        folder = args.out or settings.cache_dir / "head_weights"
        folder.mkdir(parents=True, exist_ok=True)
        path = calibration_path(folder, runtime.model.spec.name)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(weights), indent=1))
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    _print(weights, chosen, path)
    return 0


def head_samples(runtime: Runtime, sets: Sequence[TuningSet]) -> list[HeadSample]:
    """Returns what is fitted to, of layers 1 to the last; each set weighs the same. Raises BadRequest where too few samples are left."""
    made = []
    for tuning in sets:
        own = []
        for i, sample in enumerate(tuning.samples):
            try:
                own.append(_measure(runtime, sample))
            except BadRequest as error:
                print(f"left out {sample.sample_id}: {error}", file=sys.stderr)
                continue
            print(f"{tuning.label}: gradients {i + 1}/{len(tuning.samples)}", file=sys.stderr)
        made += [HeadSample(scores, gains, 1 / (len(sets) * len(own))) for scores, gains in own]
    if len(made) < 2:
        raise BadRequest(f"{len(made)} samples are left; weights need at least 2, so raise --n or give more data.")
    return made


def _measure(runtime: Runtime, sample: Sample) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns scores [L - 1, Hq, M] and gains [M] of the document tokens that are not exact as stored."""
    request = FusionRequest(sample.question, sample.chunks, gold_answers=sample.answers, max_new_tokens=64)
    prepared = runtime.prepare(request)
    exact = torch.cat([torch.full((p.stop - p.start,), p.is_exact) for p in prepared.placed["system"][1:]])
    if exact.all():
        raise BadRequest("All its chunks are exact as stored; take samples of two chunks or more.")
    answer = torch.from_numpy(runtime.prompts.tokenize(sample.answers[0]).ids)
    question = torch.from_numpy(prepared.prompt.ids[prepared.prompt.question_start :])
    gains = token_gains(runtime.decoder, mixed_kv(runtime, prepared), torch.cat([question, answer]), len(answer)).cpu()
    if not bool((gains[~exact] > 0).any()):
        raise BadRequest("No token's true KV would lower KL; the sample says nothing.")
    return _scores(runtime, prepared)[..., ~exact], gains[~exact]


def mixed_kv(runtime: Runtime, prepared: Prepared) -> MixedKV:
    """Returns a request's context as stored behind the system part and as full prefill has it."""
    prompt, placed = prepared.prompt, prepared.placed["system"]
    parts = []
    for role, method in (("method", DirectReuse()), ("full", FullPrefill())):
        cache = runtime.pool.get(role, prompt.num_tokens + 1)
        runtime.pipeline.prefill(method, prompt, placed, cache)
        # Copies, since what inference mode made cannot be read under autograd.
        parts += [cache.keys[:, : prompt.question_start].clone(), cache.values[:, : prompt.question_start].clone()]
    return MixedKV(*parts, prompt.system_len)


@torch.inference_mode()
def _scores(runtime: Runtime, prepared: Prepared) -> torch.Tensor:
    """Returns float32 [L - 1, Hq, N]: attention by layer and head, times the deviation of layer 1's value."""
    prompt = prepared.prompt
    cache = runtime.pool.get("method", prompt.num_tokens + 1)
    context = runtime.pipeline.selection(prompt, prepared.placed["system"], cache)
    try:
        probes = run_probe(context, range(1, runtime.model.spec.num_layers), ANCHOR_RATIO, "high")
        scores = torch.stack([context_head_scores(context, probe) for probe in probes])
        return (scores * compute_layer_one(context).deviation.sqrt()).cpu().clone()
    finally:
        context.loader.close()


def _weights(model: str, sets: Sequence[TuningSet], chosen: Selection) -> HeadWeights:
    every, kept = chosen.every, chosen.kept
    return HeadWeights(
        model=model,
        layers=tuple(index + 1 for index in kept.layers),
        weights=tuple(tuple(float(f"{weight:.4g}") for weight in row) for row in chosen.weights.tolist()),
        note=f"Fitted to the slope of KL by each token's share of true KV (chunks behind the system part) on "
        f"{', '.join(tuning.label for tuning in sets)}, each set of equal weight; scores are attention behind key-norm anchors of 10 % "
        f"times the deviation of layer 1's values. {len(kept.layers)} of {len(every.layers)} layers are kept: held-out loss "
        f"{kept.losses.mean():.4f}, {every.losses.mean():.4f} with all; of the best tenth's gain {kept.caught.mean():.3f} is caught, "
        f"{every.caught.mean():.3f} with all.",
        created=datetime.date.today().isoformat(),
        num_samples=len(kept.losses),
    )


def _print(weights: HeadWeights, chosen: Selection, path: Path) -> None:
    heads = range(len(weights.weights[0]))
    rows = [(layer, *(f"{weight:.3f}" for weight in row)) for layer, row in zip(weights.layers, weights.weights, strict=True)]
    print_table(("layer", *(f"head {head}" for head in heads)), rows)
    print(f"{weights.note} Filed as {path}.")
    results = {
        name: {"layers": [index + 1 for index in one.layers], "loss": float(one.losses.mean()), "caught": float(one.caught.mean())}
        for name, one in (("all", chosen.every), ("kept", chosen.kept))
    }
    print_json({"fit_heads": weights.model, "path": str(path), "n": weights.num_samples, **results})


if __name__ == "__main__":
    sys.exit(main())
