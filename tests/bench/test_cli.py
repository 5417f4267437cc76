"""The commands as a user types them, on a tiny model in a local folder: tables, one JSON line, one-sentence errors."""

from pathlib import Path

import pytest
from bench_commands import ROOT, environment, last_json, run, run_alone

from engine.bench.__main__ import main


def test_fuse_prints_a_table_and_one_json_line(home):
    data = str(home / "data.jsonl")
    done = run(home, "engine.bench", "fuse", "--data", data, "--n", "2", "--ratios", "0.1,0.5", "--repeats", "2", "--max-new-tokens", "3")
    result = last_json(done)
    assert [(r["method"], r["ratio"]) for r in result["rows"]] == [("full", None), ("reuse", None), ("qcfuse", 0.1), ("qcfuse", 0.5)]
    for row in result["rows"]:
        assert row["n"] == 2 and row["ttft_s"]["min"] <= row["ttft_s"]["median"] <= row["ttft_s"]["max"]
        assert set(row["parts_s"]) == {"probe", "select", "load_wait", "recompute", "head"}
        assert row["speedup"]["lo"] <= row["speedup"]["median"] <= row["speedup"]["hi"] and row["limit"] > 0
        assert {"rouge_l", "f1", "gold_nll", "kl_to_full", "limit_share", "N", "q"} <= set(row)
    assert result["rows"][0]["kl_to_full"]["mean"] == 0.0
    assert result["provenance"]["mode"] == "live" and result["provenance"]["device"]
    assert "speed-up" in done.stdout and "at the rival's KL" not in done.stdout
    assert result["repeats"] == 2 and "--repeats 2" in result["command"]


def test_broken_lines_and_samples_beyond_the_context_are_counted(home):
    data = str(home / "odd.jsonl")
    args = ("engine.bench", "fuse", "--data", data, "--n", "3", "--methods", "reuse", "--repeats", "1", "--max-new-tokens", "2", "--json")
    done = run(home, *args)
    assert done.returncode == 2 and "odd.jsonl, line 4" in done.stderr and len(done.stderr.strip().splitlines()) == 1
    result = last_json(run(home, *args, "--skip-bad"))
    assert result["n"] == 2 and result["skipped"] == 1
    assert [sample["id"] for sample in result["skipped_samples"]] == ["long"] and "tokens" in result["skipped_samples"][0]["reason"]
    report = result["data_report"]
    assert report["yes_no"] == ["y"] and report["over_context"] == ["long"] and len(report["bad_lines"]) == 1
    assert [row["n"] for row in result["rows"]] == [2, 2] and [row["n"] for row in result["rows_yes_no"]] == [1, 1]


def test_passages_are_packed_by_the_models_tokens(home):
    args = ("--n", "1", "--methods", "reuse", "--repeats", "1", "--max-new-tokens", "2", "--json")
    packed = last_json(run(home, "engine.bench", "fuse", "--data", str(home / "data.jsonl"), *args, "--pack-tokens", "400"))
    assert packed["data_report"]["chunks"]["median"] == 2


def test_all_methods_leave_out_what_the_model_lacks(home):
    args = ("--data", str(home / "data.jsonl"), "--n", "1", "--ratios", "0.2", "--repeats", "1", "--max-new-tokens", "1", "--json")
    done = run(home, "engine.bench", "fuse", *args, "--methods", "all")
    result = last_json(done)
    left_out = {entry["method"] for entry in result["left_out_methods"]}
    assert "qcfuse_learned" in left_out and not left_out & {row["method"] for row in result["rows"]}
    named = run(home, "engine.bench", "fuse", *args, "--methods", "qcfuse_learned")
    assert named.returncode == 2 and "head weights" in named.stderr.strip().splitlines()[-1]


def test_validate_prints_what_is_odd(home):
    args = ("engine.bench", "validate", "--data", str(home / "odd.jsonl"))
    report = last_json(run(home, *args, "--model", str(home / "model")))
    assert report["n"] == 3 and report["over_context"] == ["long"] and report["yes_no"] == ["y"]
    assert report["without_gold"] == ["long"] and "line 4" in report["bad_lines"][0]
    assert last_json(run_alone(home, *args))["over_context"] is None


def test_prefill_agrees_with_transformers(home):
    rows = last_json(run(home, "engine.bench", "prefill", "--tokens", "400,500", "--repeats", "2", "--json"))["rows"]
    assert [row["tokens"] for row in rows] == [400, 500]
    for row in rows:
        assert row["max_abs_diff"] < 1e-4
        assert row["ours_decode_tok_s"] > 0 and row["transformers_decode_tok_s"] > 0


def test_calibrate_files_a_table_that_is_then_used(home):
    data = str(home / "data.jsonl")
    result = last_json(run_alone(home, "engine.model.calibrate", "--data", data, "--n", "3"))
    assert sorted(row["layer"] for row in result["rows"]) == [1, 2, 3]
    assert Path(result["path"]).is_file() and set(result["layers"]) <= {1, 2, 3}
    rows = last_json(run(home, "engine.bench", "fuse", "--data", data, "--n", "1", "--ratios", "0.5", "--repeats", "1", "--json"))
    assert rows["critical_layers"][0] == result["layers"][0]


def test_ask_prints_answers_tokens_and_times(home):
    options = ("--repeats", "1", "--max-new-tokens", "2", "--save", str(home / "a.run.json.gz"))
    done = run_alone(home, "engine.ask", "--scenario", "harbour-museum", "q1", *options)
    assert done.returncode == 0, done.stderr
    for words in ("LIVE", "gold:", "full: first token after", "qcfuse: first token after", "recomputed, best first:", "ROUGE-L"):
        assert words in done.stdout
    from engine.runfile import load_run

    assert load_run(home / "a.run.json.gz").scenario == "harbour-museum"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("engine.bench", "fuse", "--methods", "full,nonsense"), "Unknown method 'nonsense'; known ones are: "),
        (("engine.bench", "prefill", "--tokens", "12"), "--tokens has 12"),
        (("engine.ask", "--scenario", "nowhere", "Why?"), "Unknown scenario 'nowhere'"),
        (("engine.ask", "--scenario", "harbour-museum", " "), "question is empty"),
        (("engine.ask", "--scenario", "harbour-museum", "--ratio", "2", "Why?"), "ratio is 2.0"),
    ],
)
def test_a_bad_call_is_one_sentence(home, args, words):
    done = run(home, *args)
    assert done.returncode == 2 and words in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("fuse --ratios 0.1,x", "--ratios is '0.1,x'"),
        ("fuse --ratios nan", "every ratio must be from 0 to 1"),
        ("fuse --answers 0.9", "--answers has 0.9"),
        ("fuse --methods qcfuse+nonsense", "known ones are"),
        ("fuse --data none.jsonl", "no data file"),
        ("fuse --data hotpotqa", "give the path of a JSONL file"),
        ("fuse --data ruler-mq:5", "must be a whole number of document tokens"),
        ("fuse --n 100000", "are asked for; scenarios has"),
        ("fuse --out .", "--out is '.'"),
        ("fuse --runs README.md", "--runs needs the folder"),
        ("fuse --pack-tokens 3", "--pack-tokens is 3"),
        ("fuse --max-new-tokens 0 --n 1", "The answer length is 0 tokens"),
        ("fuse --repeats -1", "--repeats is -1"),
        ("validate --pack-tokens 512", "name the model with --model"),
        ("validate --data none.jsonl", "no data file"),
    ],
)
def test_a_bad_benchmark_is_one_sentence(home, monkeypatch, capsys, args, words):
    for name, value in environment(home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(ROOT)
    assert main(args.split()) == 2
    output, errors = capsys.readouterr()
    assert not output and words in errors.strip().splitlines()[-1]


def test_a_missing_model_is_one_sentence(home):
    done = run(home / "elsewhere", "engine.ask", "--scenario", "harbour-museum", "q1")
    assert done.returncode == 2 and "Traceback" not in done.stderr and str(home / "elsewhere") in done.stderr


def test_profile_parts_a_prefills_time(home):
    result = last_json(run(home, "engine.bench", "profile", "--data", str(home / "data.jsonl"), "--ratios", "0.2", "--json"))
    assert {row["method"] for row in result["rows"]} == {"full", "qcfuse@0.2"} and result["gflop_per_s"] > 0
    gflop = {(row["method"], row["part"]): row["gflop"] for row in result["rows"]}
    assert 0 < gflop["qcfuse@0.2", "projections"] < gflop["full", "projections"]
    assert 0 < gflop["qcfuse@0.2", "attention products"] < gflop["full", "attention products"]
