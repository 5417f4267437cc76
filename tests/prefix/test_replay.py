"""Replay and what is made of it: runs as files, judged evictions, the command, no torch."""

import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from prefix_worlds import small_workload

from engine.bench.__main__ import main
from engine.cache_types import CacheRun, ReplayRequest
from engine.errors import BadRequest, BadRunFile, Cancelled, UnknownName
from engine.prefix.cachefile import dump_cache_run, load_cache_run, parse_cache_run, save_cache_run
from engine.prefix.cost import PUBLISHED_8B, PrefillCost
from engine.prefix.lab import ReplayLab, gap_closed, run_replay
from engine.prefix.policies import POLICIES
from engine.prefix.replay import replay
from engine.prefix.uses import NEVER, block_uses

ROOT = Path(__file__).resolve().parents[2]
CAPACITY = 60


@pytest.fixture(scope="module")
def lab():
    return ReplayLab(small_workload(0), seed=0, accuracy=0.8)


@pytest.fixture(scope="module")
def run(lab):
    return lab.run(POLICIES.create("saecache"), CAPACITY)


def test_uses_point_back_and_forth():
    workload = small_workload(1, num_sessions=20)
    uses = block_uses(workload)
    requests = list(workload.requests())
    for place in range(0, len(workload.path), 7):
        block, at = workload.path[place], uses.request[place]
        assert requests[at].path[uses.position[place]] == block
        before = [r.index for r in requests[:at] if block in r.path]
        assert (uses.request[uses.previous[place]] if uses.previous[place] >= 0 else None) == (before[-1] if before else None)
        later = [r.index for r in requests[at + 1 :] if block in r.path[: r.num_prompt]]
        assert uses.next_use[place] == (later[0] if later else NEVER)


def test_evictions_are_judged_one_by_one(lab, run):
    """Idle time, who suffers and whether the limit still had the block, each found again by looking through the requests."""
    requests, log = list(lab.workload.requests()), run.evictions
    limit = lab.limit(CAPACITY).num_hits
    for i in range(0, len(log.block), 11):
        block, at = log.block[i], log.request[i]
        last = next(r for r in reversed(requests[:at]) if block in r.path)
        assert log.idle_s[i] == pytest.approx(requests[at].time_s - last.time_s, rel=1e-4, abs=1e-3)
        later = next((r for r in requests[at + 1 :] if block in r.path[: r.num_prompt]), None)
        assert log.suffered[i] == (-1 if later is None else later.index)
        if later is None:
            assert not log.regret[i] and log.early_s[i] == 0.0
        else:
            place = later.path.tolist().index(block)
            assert log.regret[i] == (place < limit[later.index])
            assert log.early_s[i] == pytest.approx(later.time_s - requests[at].time_s, rel=1e-4, abs=1e-3)
    assert 0 < log.regret.sum() < len(log.regret)


def test_the_limit_regrets_nothing_that_it_could_keep(lab):
    assert lab.run(POLICIES.create("min"), CAPACITY).evictions.regret.sum() == 0


def test_ages_count_every_hit_and_eviction(run, lab):
    uses = block_uses(lab.workload)
    assert run.ages.num_evicted.sum() == len(run.evictions.block)
    assert run.ages.num_hit.sum() == (uses.position < run.requests.hit_blocks[uses.request]).sum()


def test_snapshots_add_up_to_what_is_cached(run):
    held = np.cumsum(run.requests.num_inserted) - np.cumsum(np.bincount(run.evictions.request, minlength=run.num_requests))
    assert (run.snapshots.queues.sum(1) == held[run.snapshots.request]).all()
    assert (run.snapshots.kinds.sum(1) == held[run.snapshots.request]).all() and held.max() == CAPACITY
    assert run.snapshots.request[-1] == run.num_requests - 1 and run.snapshots.weight_names[0] == "alpha structural"
    assert run.snapshots.weights.shape == (len(run.snapshots.request), len(run.snapshots.weight_names))


def test_scores_are_those_of_the_log(run):
    r = run.requests
    assert run.score().hit_tokens == pytest.approx(r.hit_tokens.sum() / r.prompt_tokens.sum())
    half = run.num_requests // 2
    assert run.second_half.hit_blocks == pytest.approx(r.hit_blocks[half:].sum() / r.prompt_blocks[half:].sum())
    expected = PUBLISHED_8B.seconds(r.prompt_tokens[half:]) - PUBLISHED_8B.seconds(r.hit_tokens[half:])
    assert run.second_half.modelled_ttft_s == pytest.approx(expected.mean(), rel=1e-5)


def test_the_gap_is_nothing_for_lru_and_all_for_the_limit(lab):
    runs = {name: lab.run(POLICIES.create(name), CAPACITY) for name in ("lru", "min", "sae_g")}
    assert gap_closed(runs["lru"], runs["lru"]) == 0.0 and gap_closed(runs["min"], runs["lru"]) == 1.0
    assert gap_closed(runs["sae_g"], runs["lru"]) <= 1.0


def test_misses_have_their_causes(lab):
    """An endless cache misses what is cold alone, and what is shorter than a block."""
    run = lab.run(POLICIES.create("lru"), lab.workload.num_blocks)
    cold, evicted, moved, tail = run.requests.missed_tokens.sum(0)
    assert cold > 0 and evicted == 0 and moved == 0 and tail > 0
    assert lab.run(POLICIES.create("lru"), CAPACITY).requests.missed_tokens[:, 1].sum() > 0


def test_a_changed_prefix_is_told_from_a_cold_block():
    workload = small_workload(2, num_sessions=15)
    # Every block holds the same: what is not seen for the first time at all has another prefix.
    alike = replace(workload, content=np.zeros(workload.num_blocks, np.int32))
    lab = ReplayLab(alike)
    missed = lab.run(POLICIES.create("lru"), lab.workload.num_blocks).requests.missed_tokens
    assert (missed[1:, 0] == 0).all() and missed[1:, 2].sum() > 0


@pytest.mark.parametrize("name", POLICIES.names())
def test_runs_are_files_and_come_back_the_same(lab, name, tmp_path):
    run = lab.run(POLICIES.create(name), CAPACITY)
    path = tmp_path / "a.cache.json.gz"
    save_cache_run(run, path)
    again = load_cache_run(path)
    assert dump_cache_run(again) == path.read_bytes() == dump_cache_run(run)
    for part in ("requests", "evictions", "snapshots", "ages"):
        for field in fields(getattr(run, part)):
            assert np.array_equal(getattr(getattr(run, part), field.name), getattr(getattr(again, part), field.name))
    assert again.score() == run.score() and again.params == run.params and isinstance(again, CacheRun)


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: replace(run, requests=replace(run.requests, hit_blocks=run.requests.hit_blocks[1:])),
        lambda run: replace(run, evictions=replace(run.evictions, request=run.evictions.request + 10**6)),
        lambda run: replace(run, evictions=replace(run.evictions, kind=run.evictions.kind + 9)),
        lambda run: replace(run, limit_hit_blocks=run.limit_hit_blocks[:-1]),
        lambda run: replace(run, snapshots=replace(run.snapshots, queues=run.snapshots.queues[:, :2])),
    ],
)
def test_runs_that_do_not_fit_together_are_refused(run, damage):
    with pytest.raises(BadRunFile):
        parse_cache_run(dump_cache_run(damage(run)))


def test_files_that_are_no_runs_are_refused(run, tmp_path):
    data = dump_cache_run(run)
    for broken in (b"", b"no gzip", data[:-30], data[: len(data) // 2]):
        with pytest.raises(BadRunFile):
            parse_cache_run(broken)
    with pytest.raises(BadRunFile, match="cannot be read"):
        load_cache_run(tmp_path / "missing")


def test_a_replay_by_request():
    run = run_replay(ReplayRequest("tool_use", "sae_g", 0.05, seed=3, params={"beta": 0.0}))
    assert run.policy == "sae_g" and run.params["beta"] == 0.0 and run.seed == 3 and run.mode == "simulated"
    assert run.capacity_blocks == round(0.05 * run.num_blocks) and run.predictor == "oracle with 77% accuracy"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"policy": "luck"}, UnknownName),
        ({"workload": "nowhere"}, BadRequest),
        ({"params": {"colour": 1}}, BadRequest),
        ({"capacity": 1e-9}, BadRequest),
    ],
)
def test_bad_requests_are_one_sentence(change, error):
    with pytest.raises(error):
        run_replay(ReplayRequest(**({"workload": "tool_use", "policy": "lru", "capacity": 0.1} | change)))


@pytest.mark.parametrize("capacity", [0.0, -0.1, float("nan"), float("inf")])
def test_bad_capacities_are_refused_at_once(capacity):
    with pytest.raises(BadRequest):
        ReplayRequest("mix", "lru", capacity)


def test_a_replay_can_be_stopped():
    with pytest.raises(Cancelled):
        replay(small_workload(0), POLICIES.create("lru"), CAPACITY, progress=lambda share: False)


def test_a_measured_cost_is_fitted():
    lengths = np.array([512, 1024, 2048, 4096])
    fit = PrefillCost.fitted("x", lengths, PUBLISHED_8B.seconds(lengths), "here")
    assert (fit.linear_s, fit.quadratic_s) == pytest.approx((PUBLISHED_8B.linear_s, PUBLISHED_8B.quadratic_s))
    with pytest.raises(BadRequest):
        PrefillCost.fitted("x", np.array([512, 512]), np.array([1.0, 1.0]), "here")


def test_the_command_prints_rows_and_one_json_line(tmp_path, capsys):
    args = ["evict", "--workload", "tool_use", "--policies", "lru,saecache,min", "--capacity", "0.05,200", "--seeds", "2", "--quiet"]
    assert main([*args, "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out.json")]) == 0
    shown, told = capsys.readouterr()
    result = json.loads(shown.strip().splitlines()[-1])
    assert told == "", "it was to be quiet"
    assert [(row["capacity"], row["policy"]) for row in result["rows"]] == [(c, p) for c in (0.05, 200) for p in ("lru", "saecache", "min")]
    for row in result["rows"]:
        assert {
            "workload",
            "hit_tokens",
            "hit_blocks",
            "hit_tokens_second_half",
            "modelled_ttft_s",
            "us_per_eviction",
            "gap_closed",
        } <= set(row)
        assert row["hit_blocks"]["lo"] <= row["hit_blocks"]["mean"] <= row["hit_blocks"]["hi"] and row["n"] == 2
    assert {row["gap_closed"]["mean"] for row in result["rows"] if row["policy"] == "lru" and row["gap_closed"]} <= {0.0}
    assert result["mode"] == "simulated" and "gap closed" in shown
    assert json.loads((tmp_path / "out.json").read_text())["rows"] == result["rows"]
    assert len(list((tmp_path / "runs").glob("*.cache.json.gz"))) == 6
    assert load_cache_run(next((tmp_path / "runs").glob("*lru*"))).policy == "lru"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--capacity", "lots"], "--capacity is 'lots'"),
        (["--capacity", "0"], "--capacity has 0"),
        (["--capacity", "nan"], "--capacity has nan"),
        (["--policies", "luck"], "Unknown policy 'luck'"),
        (["--workload", "nowhere"], "neither a log nor a generated workload"),
        (["--seeds", "0"], "--seeds is 0"),
        (["--predictor", "2"], "--predictor is '2'"),
        (["--arrivals", "never"], "--arrivals is 'never'"),
    ],
)
def test_bad_options_are_one_sentence(args, said, capsys):
    assert main(["evict", "--workload", "tool_use", *args]) == 2
    assert said in (error := capsys.readouterr().err) and len(error.strip().splitlines()) == 1


def test_replay_needs_no_torch():
    """The command runs where importing torch fails."""
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'transformers', 'triton', 'gradio'):\n"
        "            raise ImportError(name + ' is not here')\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from engine.bench.__main__ import main\n"
        "sys.exit(main('evict --workload tool_use --policies lru,sae_g,min --capacity 0.1 --json'.split()))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"][2]["policy"] == "min"
    assert "2/3 tool_use at 0.1, predictor" in done.stderr, "how far it is stands apart from the JSON"
