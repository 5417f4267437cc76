"""Where a prefill's time goes on a CPU, by torch's profiler: parts, their products, and the least time those could take.

The floor of a part is its floating point operations at the rate of one large product of this model, measured in the same
run. Parts that only move numbers have none.
"""

import argparse
import time
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from engine.bench.configs import parse_configs
from engine.bench.data import load_set
from engine.bench.harness import Job
from engine.bench.report import print_json, print_table
from engine.compare import contexts_of
from engine.errors import BadRequest
from engine.fusion.base import FusionMethod
from engine.provenance import provenance
from engine.runtime import Prepared, Runtime, load_runtime
from engine.settings import Settings
from engine.types import FusionRequest
from kernels.linear import Linear

PRODUCTS = ("mkldnn::_linear_pointwise", "aten::mm", "aten::addmm", "aten::bmm")
FUSED_ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"
SOFTMAX = ("aten::_softmax", "aten::exp", "aten::amax")
COPIES = ("aten::copy_", "aten::index_copy_", "aten::index_select", "aten::index", "aten::cat", "aten::embedding")
PARTS = ("projections", "attention products", "softmax", "copies", "elementwise", "rest")


class Event(NamedTuple):
    """Calls of one operation with the same shapes: time without what it called in turn."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    calls: int
    time_ms: float


class PartTime(NamedTuple):
    """One part of a prefill. gflop: of its matrix products, 0 where it has none; share: of the profiled time."""

    part: str
    calls: int
    time_ms: float
    share: float
    gflop: float


def main(argv: list[str]) -> None:
    """Profiles full prefill and other methods on one question. Raises EngineError."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench profile", description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="scenarios", help="as of the fuse benchmark; its first sample is taken")
    parser.add_argument("--methods", default="full,qcfuse")
    parser.add_argument("--ratios", default="0.2")
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    configs = parse_configs(args.methods, args.ratios)
    data = load_set(args.data, 1, 0)
    runtime = load_runtime(settings.model, settings)
    if runtime.model.device.type != "cpu":
        raise BadRequest(f"The profile is of a CPU and the device is {runtime.model.device}; set FUSESCOPE_DEVICE=cpu.")
    job = Job(tuple(data.samples), configs, None, 1, 8, "system", 0)
    request = job.request(data.samples[0])
    prepared = runtime.prepare(request, contexts=contexts_of(job.methods().values(), request))
    rate = product_rate(runtime)
    rows = []
    for label, method in job.methods().items():
        for part in profile_method(runtime, method, request, prepared):
            floor_ms = 1e3 * part.gflop / rate if part.gflop else None
            rows.append({"method": label, **part._asdict(), "floor_ms": floor_ms})
    if not args.json:
        print_table(
            ("method", "part", "calls", "time ms", "share", "GFLOP", "floor ms"),
            [
                (
                    r["method"],
                    r["part"],
                    r["calls"],
                    f"{r['time_ms']:.0f}",
                    f"{r['share']:.0%}",
                    f"{r['gflop']:.0f}",
                    "–" if r["floor_ms"] is None else f"{r['floor_ms']:.0f}",
                )
                for r in rows
            ],
        )
    import msgspec

    sizes = {"tokens": prepared.prompt.num_tokens, "gflop_per_s": rate}
    print_json({"bench": "profile", "rows": rows, **sizes, "provenance": msgspec.to_builtins(provenance(runtime))})


def profile_method(runtime: Runtime, method: FusionMethod, request: FusionRequest, prepared: Prepared) -> list[PartTime]:
    """Returns the parts of the method's prefill, its second one, in the order of PARTS."""
    placed = prepared.placed[method.chunk_context or request.chunk_context]

    def prefill() -> None:
        cache = runtime.pool.get("method", prepared.prompt.num_tokens + 65)
        runtime.pipeline.prefill(method, prepared.prompt, placed, cache)

    prefill()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        prefill()
    events = [
        Event(e.key, tuple(tuple(shape) for shape in e.input_shapes), e.count, e.self_cpu_time_total / 1e3)
        for e in profiled.key_averages(group_by_input_shape=True)
    ]
    return parts_of(events, _weight_shapes(runtime))


def parts_of(events: Iterable[Event], weights: frozenset[tuple[int, int]]) -> list[PartTime]:
    """Returns the time of each part; products with a weight [out, in] of the model are projections, others attention."""
    calls, times, gflops = (dict.fromkeys(PARTS, 0.0) for _ in range(3))
    for event in events:
        part = _part_of(event, weights)
        calls[part] += event.calls
        times[part] += event.time_ms
        gflops[part] += event.calls * _gflop(event)
    total = sum(times.values()) or 1.0
    return [PartTime(part, int(calls[part]), times[part], times[part] / total, gflops[part]) for part in PARTS]


def product_rate(runtime: Runtime, num_rows: int = 2048, repeats: int = 7) -> float:
    """Returns GFLOP/s of the model's largest layer product with `num_rows` rows, the best of some."""
    weight = runtime.decoder.weights.layers[0].gate_up.weight
    product, rows = Linear(weight), torch.randn(num_rows, weight.shape[1])
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        product(rows)
        times.append(time.perf_counter() - begun)
    return 2e-9 * num_rows * weight.numel() / min(times)


def _weight_shapes(runtime: Runtime) -> frozenset[tuple[int, int]]:
    w = runtime.decoder.weights
    products = [w.head, *(p for layer in w.layers for p in (layer.query, layer.keys_values, layer.out, layer.gate_up, layer.down))]
    return frozenset(tuple(product.weight.shape) for product in products)


def _part_of(event: Event, weights: frozenset[tuple[int, int]]) -> str:
    if event.name in PRODUCTS:
        matrices = {shape for shape in event.shapes if len(shape) == 2}
        is_projection = any(shape in weights or shape[::-1] in weights for shape in matrices)
        return "projections" if is_projection else "attention products"
    if event.name == FUSED_ATTENTION:
        return "attention products"
    if event.name in SOFTMAX:
        return "softmax"
    if event.name in COPIES:
        return "copies"
    inner = event.name.removeprefix("aten::").rstrip("_")
    return "elementwise" if inner in ("mul", "add", "addcmul", "silu", "linalg_vector_norm", "rsqrt", "div", "neg") else "rest"


def _gflop(event: Event) -> float:
    """Returns 1e9 floating point operations of one call of a matrix product; 0 of anything else."""
    if event.name == FUSED_ATTENTION and len(event.shapes) > 1:
        (batch, heads, rows, dim), keys = event.shapes[0], event.shapes[1][2]
        # As many rows as keys is a whole prompt, whose rows see no key behind them.
        pairs = rows * (rows + 1) / 2 if rows == keys else rows * keys
        return 4e-9 * batch * heads * pairs * dim
    if event.name not in PRODUCTS:
        return 0.0
    left, right = [shape for shape in event.shapes if len(shape) in (2, 3)][:2]
    *batch, rows, inner = left
    outer = right[0] if event.name.startswith("mkldnn") else right[-1]
    return 2e-9 * (batch[0] if batch else 1) * rows * inner * outer
