"""LRU and MIN against `kvcache-simulator` (KVCache.AI) on both Mooncake traces: the same hits to four digits (law 18)."""

import gzip
import json
from pathlib import Path

import pytest
from kvcache_sim.plan import build_execution_plan
from kvcache_sim.policies import simulate_policy
from kvcache_sim.trace import parse_trace_lines

from engine.prefix.policies import POLICIES
from engine.prefix.replay import replay
from engine.prefix.uses import block_uses
from engine.prefix.workloads.mooncake import BLOCK_TOKENS, read_mooncake

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
THEIRS = {"lru": "lru", "min": "optimal"}


@pytest.fixture(scope="module", params=["conversation", "synthetic"])
def trace(request):
    path = TRACES / f"mooncake_{request.param}_trace.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    # All blocks count as full, so that hits are blocks on both sides.
    full = [json.dumps(row | {"input_length": BLOCK_TOKENS * len(row["hash_ids"])}) for row in rows]
    return read_mooncake(path), build_execution_plan(parse_trace_lines(full, block_size=BLOCK_TOKENS))


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("share", [0.05, 0.10, 0.20])
def test_hits_agree_with_kvcache_simulator(trace, name, share):
    workload, plan = trace
    capacity = round(share * workload.num_blocks)
    done = replay(workload, POLICIES.create(name), capacity, block_uses(workload))
    warm = plan.warmup_requests
    ours = done.num_hits[warm:].sum() / workload.num_prompt[warm:].sum()
    theirs = simulate_policy(plan, THEIRS[name], capacity)
    assert theirs.hitRate > 0.05 and ours == pytest.approx(theirs.hitRate, abs=5e-5)
