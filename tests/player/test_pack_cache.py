"""What the player decodes of packed cache runs is the runs, and what it counts is what numpy counts."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evict_samples import HOSTILE, made_run
from launch import WAIT_MS

from engine.errors import BadRequest
from engine.prefix.cachefile import load_cache_run
from viz.player.pack_cache import pack_film, pack_ints
from viz.player.static import FILMS_DIR, load_films

FILMS = sorted(path.name.split("-")[0] for path in FILMS_DIR.glob("*-lru-*.cache.json.gz"))
MAX_BYTES = 1_000_000


def text_of(film):
    return json.dumps(film, ensure_ascii=False, separators=(",", ":"))


@pytest.fixture(scope="module")
def decoded():
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, which is not installed")

    def decode(film):
        command = [node, str(Path(__file__).with_name("dump_film.mjs"))]
        return json.loads(
            subprocess.run(command, input=text_of(film), capture_output=True, text=True, check=True, timeout=WAIT_MS / 1000).stdout
        )

    return decode


def assert_same(runs, seen):
    first = runs[0]
    assert seen["setting"] == [first.workload, first.seed, first.capacity_blocks, first.block_tokens, first.num_blocks]
    for name in ("time_s", "session", "prompt_blocks", "prompt_tokens"):
        np.testing.assert_array_equal(seen["requests"][name], getattr(first.requests, name), err_msg=name)
    assert [method["name"] for method in seen["methods"]] == [run.policy for run in runs]
    for run, got in zip(runs, seen["methods"], strict=True):
        for name in ("hit_blocks", "hit_tokens", "num_inserted", "ttft_s"):
            np.testing.assert_array_equal(np.float32(got["requests"][name]), np.float32(getattr(run.requests, name)), err_msg=name)
        for i in range(4):
            np.testing.assert_array_equal(got["requests"][f"missed_{i}"], run.requests.missed_tokens[:, i])
        for name in ("request", "block", "kind", "queue", "depth", "hits", "suffered", "regret"):
            np.testing.assert_array_equal(got["evictions"][name], getattr(run.evictions, name).astype(int), err_msg=name)
        for name in ("idle_s", "early_s"):
            np.testing.assert_array_equal(np.float32(got["evictions"][name]), getattr(run.evictions, name), err_msg=name)
        for name in ("request", "queues", "kinds", "weights"):
            np.testing.assert_array_equal(
                np.float32(got["snapshots"][name]), np.float32(getattr(run.snapshots, name).ravel()), err_msg=name
            )
        assert got["weight_names"] == list(run.snapshots.weight_names)


def assert_counts(run, got):
    r, log, num = run.requests, run.evictions, run.num_requests
    np.testing.assert_allclose(got["rates"], np.cumsum(r.hit_tokens) / np.cumsum(r.prompt_tokens), rtol=1e-12)
    assert got["half"] == pytest.approx(run.second_half.hit_tokens, rel=1e-12)
    assert got["left"] == np.bincount(log.request, minlength=num).tolist()
    assert got["regrets"] == [0, *np.cumsum(np.bincount(log.request[log.regret], minlength=num)).tolist()]
    assert got["moments"] == (np.searchsorted(run.snapshots.request, np.arange(num), side="right") - 1).tolist()


@pytest.mark.parametrize("name", FILMS)
def test_every_recorded_film_comes_back_exactly_and_is_counted_right(name, decoded):
    runs = list(load_films(FILMS_DIR)[name].values())
    seen = decoded(pack_film(runs))
    assert_same(runs, seen)
    for run, got in zip(runs, seen["methods"], strict=True):
        assert_counts(run, got)
        facts = {name: seen["facts"][f"{run.policy}.{name}"] for name in ("half", "evicted")}
        assert facts == {"half": f"{100 * run.second_half.hit_tokens:.1f} %", "evicted": f"{len(run.evictions.block):,}"}


@pytest.mark.parametrize("path", sorted(FILMS_DIR.glob("*.cache.json.gz")), ids=lambda path: path.name.split(".")[0])
def test_one_recorded_run_is_below_a_megabyte(path):
    assert len(text_of(pack_film([load_cache_run(path)])).encode()) < MAX_BYTES


def test_made_up_and_hostile_runs_come_back(decoded):
    runs = [replace(made_run(policy), workload=HOSTILE, notes=(HOSTILE,), predictor=HOSTILE) for policy in ("lru", "saecache", HOSTILE)]
    assert_same(runs, decoded(pack_film(runs, HOSTILE)))


def test_times_that_do_not_follow_from_the_requests_are_kept(decoded):
    run = made_run()
    odd = replace(run.evictions, idle_s=run.evictions.idle_s + np.float32(0.37), early_s=run.evictions.early_s + np.float32(0.11))
    changed = replace(run, evictions=odd)
    film = pack_film([changed])
    assert {"idle_s", "early_s"} <= set(film["methods"][0]["evictions"])
    assert_same([changed], decoded(film))


def test_a_run_without_evictions_or_limit_comes_back(decoded):
    run = made_run()
    empty = replace(run.evictions, **{name: getattr(run.evictions, name)[:0] for name in run.evictions.__dataclass_fields__})
    bare = replace(run, evictions=empty, limit_hit_blocks=None)
    seen = decoded(pack_film([bare]))
    assert_same([bare], seen)
    assert seen["limit"] is None and set(seen["methods"][0]["left"]) == {0}


@pytest.mark.parametrize("is_fresh", [False, True])
@pytest.mark.parametrize("mode", ["live", "simulated"])
def test_the_mode_says_how_the_numbers_came_about(mode, is_fresh):
    film = pack_film([replace(made_run(), mode=mode)], is_fresh=is_fresh)
    assert film["provenance"]["mode"] == {"live": "live" if is_fresh else "replay", "simulated": "simulated"}[mode]


def test_runs_that_cannot_be_set_side_by_side_are_refused():
    with pytest.raises(BadRequest, match="another load or cache"):
        pack_film([made_run("lru"), made_run("saecache", capacity=41)])
    with pytest.raises(BadRequest, match="each policy once"):
        pack_film([made_run(), made_run()])
    with pytest.raises(BadRequest, match="no cache run"):
        pack_film([])


def test_whole_numbers_are_packed_as_repeated_differences():
    assert pack_ints(np.array([5, 4, 3, 3, 3])) == bytes([10, 0, 1, 1, 0, 1])
    assert pack_ints(np.array([], np.int32)) == b""
    assert len(pack_ints(np.arange(10_000))) < 8


def test_packing_is_pure():
    assert text_of(pack_film([made_run()])) == text_of(pack_film([made_run()]))
