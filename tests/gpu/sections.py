"""The parts of the GPU script behind the kernel tests, each as JSON rows."""

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from attention_rivals import RIVALS, NotHere
from shapes import LLAMA_8B, SMALL, TINY, Shape

from kernels.batch import row_batch
from kernels.ops import load_ops
from kernels.rates import Rates, measure_rates
from kernels.sparse_prefill_attention import sparse_prefill_attention
from kernels.tuning import time_tiles
from kernels.verify import TOLERANCE, check_kernel, median_ms
from kernels.workload import SMALL as SMALL_SIZES
from kernels.workload import Sizes, Workload, attention_inputs, workloads

# Beside torch and numpy; a machine without network may lack one, which is no reason to lose the kernels' times.
NEEDED_BY_THE_ENGINE = ("msgspec", "safetensors")

Row = dict[str, object]
IsBefore = Callable[[float], bool]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run.

    Args:
        lengths: context tokens of what is timed.
        checked_length: the largest of them at which the float32 reference fits in memory.
        checked_shape, checked: the model, and the methods with their context tokens, of the checks of whole requests.
    """

    device: str
    dtype: torch.dtype
    shape: Shape
    lengths: tuple[int, ...]
    checked_length: int
    repeats: int
    num_answer_tokens: int
    checked_shape: Shape
    checked: dict[str, int]

    def sizes(self, num_context: int) -> Sizes:
        if self.device == "cpu":
            return SMALL_SIZES._replace(num_context=num_context)
        return Sizes(num_context, 0.3, 64, self.shape.num_heads, self.shape.num_kv_heads, self.shape.head_dim)


CHECKED_ON_GPU = {"full": 288, "reuse": 480, "cacheblend": 960, "qcfuse": 672}
FULL = Plan("cuda", torch.bfloat16, LLAMA_8B, (2_000, 8_000, 32_000), 8_000, 5, 16, SMALL, CHECKED_ON_GPU)
REHEARSAL = Plan("cpu", torch.float32, TINY, (24, 48), 24, 1, 2, TINY, {"reuse": 24, "qcfuse": 48})


def check(plan: Plan) -> dict[str, object]:
    """Returns `requests`, the checks of whole requests, and what keeps them from being made, None where nothing does."""
    missing = [name for name in NEEDED_BY_THE_ENGINE if importlib.util.find_spec(name) is None]
    if missing:
        return {"requests": [], "requests_left_out": f"{', '.join(missing)} not installed"}
    from request_checks import check_requests

    rows = check_requests(torch.device(plan.device), plan.checked_shape, list(plan.checked.values()), list(plan.checked))
    return {"requests": list(rows), "requests_left_out": None}


def run(plan: Plan, is_before: IsBefore, kernels_until: float, ttft_until: float) -> Iterator[dict[str, object]]:
    """Yields the rows of part after part; a part that may not begin any more is left out and named."""
    device = torch.device(plan.device)
    rates = measure_rates(device) if plan.device == "cuda" else None
    left_out: list[str] = []
    yield {"rates": None if rates is None else rates._asdict(), "left_out": left_out}
    yield {"kernels": [row for n in plan.lengths for row in time_kernels(plan, n, rates)]}
    for name, part in (("attention", time_attention), ("tiles", time_tiles_here)):
        rows: list[Row] = []
        for num_context in plan.lengths:
            if is_before(kernels_until):
                rows += part(plan, num_context, rates)
            else:
                left_out.append(f"{name} at {num_context}")
        yield {name: rows}
    sets = [load_ops("torch", plan.device), load_ops("triton", plan.device)]
    if any(importlib.util.find_spec(name) is None for name in NEEDED_BY_THE_ENGINE):
        left_out.append("ttft")
        yield {"ttft": []}
        return
    from ttft import time_all

    # A rehearsal takes its shortest request alone: the interpreter needs seconds for one.
    lengths = list(plan.lengths if plan.device == "cuda" else plan.lengths[:1])
    rows = []
    for found in time_all(plan.shape, lengths, sets, device, plan.repeats, plan.num_answer_tokens, lambda: is_before(ttft_until)):
        rows += found
        yield {"ttft": rows}


def time_kernels(plan: Plan, num_context: int, rates: Rates | None) -> list[Row]:
    """Returns every Triton kernel against its floor, after a check against the reference where that fits in memory."""
    ops, rows = load_ops("triton", plan.device), []
    for work in workloads(plan.sizes(num_context), plan.dtype, torch.device(plan.device)):
        check = check_kernel(work, ops, rates)._asdict() if num_context <= plan.checked_length else _unchecked(work, plan, rates)
        rows.append(check | {"of_roofline": None if rates is None else check["floor_ms"] / check["time_ms"]})
    return rows


def _unchecked(work: Workload, plan: Plan, rates: Rates | None) -> Row:
    ops = load_ops("triton", plan.device)
    is_finite = all(bool(torch.isfinite(t).all()) for t in work.run(ops))
    time_ms = median_ms(lambda: work.run(ops), torch.device(plan.device), plan.repeats)
    floor_ms = None if rates is None else rates.floor_ms(work.num_bytes, work.num_flops)
    row = {"kernel": work.kernel, "shape": work.shape, "dtype": str(work.dtype).removeprefix("torch."), "backend": ops.name}
    return row | {"max_error": None, "is_ok": is_finite, "time_ms": time_ms, "floor_ms": floor_ms}


def time_attention(plan: Plan, num_context: int, rates: Rates | None) -> list[Row]:
    """Returns our attention and its rivals on the same rows, each first compared with ours."""
    sizes, device = plan.sizes(num_context), torch.device(plan.device)
    query, keys, values = attention_inputs(sizes, plan.dtype, device)
    positions = sizes.positions().to(device)
    rows = row_batch([sizes.positions()], device)
    ours = sparse_prefill_attention(query, keys, values, rows).out
    ours_ms = median_ms(lambda: sparse_prefill_attention(query, keys, values, rows), device, plan.repeats)
    table: list[Row] = [{"num_context": num_context, "num_rows": rows.num_rows[0], "name": "ours", "time_ms": ours_ms}]
    for name, prepare in RIVALS.items():
        row: Row = {"num_context": num_context, "num_rows": rows.num_rows[0], "name": name}
        try:
            call = prepare(query, keys, values, positions)
            difference = float((call().float() - ours.float()).abs().max())
            row |= {"max_difference": difference, "agrees": difference < 2 * TOLERANCE[plan.dtype]}
            row["time_ms"] = median_ms(call, device, plan.repeats)
            row["ours_is_faster_by"] = row["time_ms"] / ours_ms
        except NotHere as error:
            row["left_out"] = str(error)
        except (RuntimeError, TypeError) as error:
            # Out of memory, or a rival that does not run here, which is no reason to lose the other rows.
            row["failed"] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"
        table.append(row)
    return table


def time_tiles_here(plan: Plan, num_context: int, rates: Rates | None) -> list[Row]:
    """Returns the attention's time with the tile of the table, first, and with those worth trying, fastest first; none without a GPU."""
    if rates is None:
        return []
    inputs = attention_inputs(sizes := plan.sizes(num_context), plan.dtype, torch.device(plan.device))
    timed = time_tiles(*inputs, row_batch([sizes.positions()], plan.device))
    return [{"num_context": num_context, "tile": list(t.tile), "time_ms": t.time_ms, "is_default": i == 0} for i, t in enumerate(timed)]
