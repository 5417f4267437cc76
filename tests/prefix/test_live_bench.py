"""`python -m engine.bench live`: measured under each policy on the same requests, with its checks, and clear about a wrong call."""

import json

import pytest
from worlds import tiny_runtime

from engine.bench import live
from engine.bench.__main__ import main
from engine.errors import BadRequest
from engine.prefix.cachefile import load_cache_run


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    return tiny_runtime(tmp_path_factory.mktemp("live"))


@pytest.fixture
def here(runtime, monkeypatch):
    monkeypatch.setattr(live, "load_runtime", lambda name, settings: runtime)
    return runtime


def test_the_command_prints_times_with_intervals_and_checks(here, capsys, tmp_path):
    call = ["live", "--json", "--requests", "9", "--seeds", "2", "--gap", "20", "--soak", "30", "--runs", str(tmp_path / "runs")]
    assert main(call) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in result["rows"]] == ["lru", "saecache"] and result["mode"] == "live"
    for row in result["rows"]:
        assert row["n"] == 18 and row["ttft_s"]["lo"] <= row["ttft_s"]["mean"] <= row["ttft_s"]["hi"] and row["ttft_s"]["lo"] > 0
        assert 0 < row["hit_blocks"] <= row["limit_hit_blocks"] <= 1
    first, second = result["rows"]
    assert first["ttft_to_lru"] == {"mean": 1.0, "lo": 1.0, "hi": 1.0} and first["ttft_minus_lru_s"]["mean"] == 0.0
    assert first["from_hits"]["mean"] == 1.0 and first["num_hits_differ"] == 0 and 0 <= second["num_hits_differ"] <= 18
    assert result["checks"]["saecache_finds_at_least_as_much_as_lru"] == (second["hit_tokens"] >= first["hit_tokens"])
    gained = second["ttft_s"]["mean"] - first["ttft_s"]["mean"]
    assert second["ttft_minus_lru_s"]["mean"] == pytest.approx(gained, abs=2e-4 * first["ttft_s"]["mean"])
    assert result["checks"]["saecache_ttft_at_most_lru"] == (second["ttft_to_lru"]["mean"] <= 1.0)
    assert result["checks"]["pool_within_bytes"] and result["checks"]["hits_and_evictions_as_replayed"]
    assert [round(0.25 * num) for num in result["num_blocks"]] == result["capacity_blocks"]
    page_bytes = 16 * 2 * 4 * 2 * 16 * 4
    assert result["pool_bytes"] == [blocks * page_bytes for blocks in result["capacity_blocks"]]
    assert result["memory"]["requests"] == 30 and 0 < result["gather"]["share_of_ttft"] < 1
    runs = [load_cache_run(path) for path in (tmp_path / "runs").iterdir()]
    assert sorted((run.policy, run.mode, run.seed) for run in runs) == [(p, "live", s) for p in ("lru", "saecache") for s in (0, 1)]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (["--seeds", "0"], "--seeds is 0"),
        (["--gap", "nan"], "--gap is nan"),
        (["--requests", "0"], "0 requests"),
        (["--capacity", "0"], "The capacity is 0"),
        (["--predictor", "maybe"], "--predictor is 'maybe'"),
        (["--predictor", "learned"], "There is no session predictor for tiny-llama; train one"),
        (["--policies", "lru,min", "--requests", "3"], "'min' needs to know requests to come"),
    ],
)
def test_a_wrong_call_is_refused_in_one_sentence(here, call, sentence):
    with pytest.raises(BadRequest, match=sentence) as error:
        live.main([*call, "--soak", "0"])
    assert str(error.value).count(". ") == 0 and str(error.value).endswith(".")


def test_an_unknown_policy_is_named(here, capsys):
    assert main(["live", "--policies", "best"]) == 2
    assert "lru" in capsys.readouterr().err
