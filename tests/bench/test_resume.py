"""A benchmark that is stopped, by Ctrl-C or by force, goes on with the same command and says the same in the end."""

import json
import signal
import time

import pytest
from bench_commands import host, last_json, run, run_alone

from engine.runfile import load_run

METHODS = ("--methods", "full,reuse,qcfuse,random,qcfuse+primed", "--ratios", "0.05,0.2", "--answers", "0.2")
NUM = 6
OPTIONS = ("--n", str(NUM), *METHODS, "--repeats", "2", "--max-new-tokens", "3", "--json")


def arguments(home):
    return ("engine.bench", "fuse", "--data", str(home / "data.jsonl"), *OPTIONS)


def without_times(result):
    """Returns what does not depend on how fast the machine was or how often the run was stopped."""
    timed = ("peak_memory_gib", "resumed", "command", "provenance", "latency_at_equal_quality", "costs")
    kept = {name: value for name, value in result.items() if name not in timed}
    slow = ("ttft_s", "speedup", "limit", "limit_share", "work_limit", "work_limit_share", "probe_share", "parts_s", "break_even")
    kept["rows"] = [{name: value for name, value in row.items() if name not in slow} for row in result["rows"]]
    kept["comparisons"] = [entry for entry in result["comparisons"] if not entry["metric"].startswith("ttft")]
    kept["equal"] = [
        (e["method"], e["versus"], e["versus_ratio"], e["kl"], e["n"], e["reached"]) for e in result["latency_at_equal_quality"]
    ]
    kept["costs"] = [(cost["context"], cost["disk_mb"], cost["n"]) for cost in result["costs"]]
    return kept


@pytest.fixture(scope="module")
def unbroken(home):
    return last_json(run_alone(home, *arguments(home), cache="unbroken"))


def stopped(home, cache, how):
    """Runs the benchmark until its first sample is on disk, stops it and returns its status, stderr and kept lines."""
    command = host().start(home, *arguments(home), cache=cache)
    folder, deadline = home / cache / "bench", time.monotonic() + 120
    while not any(b"\n" in path.read_bytes() for path in folder.glob("*.jsonl")):
        assert command.is_running() and time.monotonic() < deadline, command.finish(0).stderr
        time.sleep(0.005)
    command.send_signal(how)
    done = command.finish(60)
    assert not done.stdout
    (path,) = folder.glob("*.jsonl")
    return done.returncode, done.stderr, path


def test_ctrl_c_keeps_finished_samples_and_says_how_to_go_on(home, unbroken):
    status, errors, path = stopped(home, "stopped", signal.SIGINT)
    assert status == 130 and "Traceback" not in errors
    assert f"of {NUM} samples are kept" in errors and "The same command goes on" in errors
    done = run(home, *arguments(home), cache="stopped")
    result = last_json(done)
    assert 1 <= result["resumed"] < NUM and f"{result['resumed']} of {NUM} samples were finished before" in done.stderr
    assert without_times(result) == without_times(unbroken)
    assert not path.exists(), "a finished benchmark leaves nothing behind"


def test_a_killed_run_goes_on_past_a_torn_line(home, unbroken):
    status, _, path = stopped(home, "killed", signal.SIGKILL)
    assert status == -signal.SIGKILL
    with path.open("ab") as file:
        file.write(b'{"index": 7, "sample')
    result = last_json(run(home, *arguments(home), cache="killed"))
    assert 1 <= result["resumed"] < NUM
    assert without_times(result) == without_times(unbroken)


def test_fresh_and_other_settings_start_anew(home):
    _, _, path = stopped(home, "fresh", signal.SIGKILL)
    other = last_json(run(home, *arguments(home), "--n", "2", "--seed", "1", cache="fresh"))
    assert other["resumed"] == 0 and path.exists()
    assert last_json(run(home, *arguments(home), "--fresh", cache="fresh"))["resumed"] == 0
    assert not path.exists()


def test_an_unbroken_run_has_every_key(unbroken):
    assert unbroken["format"] == "fusescope-results/1" and unbroken["n"] == NUM and unbroken["repeats"] == 2
    assert unbroken["skipped"] == 0 and unbroken["skipped_samples"] == [] and unbroken["resumed"] == 0
    rows = {(row["method"], row["ratio"]): row for row in unbroken["rows"]}
    assert next(iter(rows)) == ("full", None)
    assert rows["qcfuse", 0.05]["rouge_l"] is None and rows["qcfuse", 0.2]["rouge_l"] is not None
    assert rows["qcfuse", 0.05]["gold_nll"] is not None and rows["qcfuse", 0.05]["same_answer"] is None
    assert rows["qcfuse+primed", 0.2]["context"] == "primed" and rows["qcfuse", 0.2]["context"] == "system"
    assert rows["full", None]["rows_share"] == 1.0 and 0 < rows["reuse", None]["rows_share"] < rows["qcfuse", 0.2]["rows_share"] < 1
    assert [cost["context"] for cost in unbroken["costs"]] == ["system", "primed"]
    assert {"kl_ratio", "ttft_ratio", "kl_to_full"} <= {entry["metric"] for entry in unbroken["comparisons"]}
    assert {(e["method"], e["versus"]) for e in unbroken["latency_at_equal_quality"]} == {
        *(("qcfuse", "random"), ("qcfuse+primed", "random"), ("qcfuse+primed", "qcfuse")),
    }


def test_files_beside_the_json(home, tmp_path):
    args = ("--n", "2", "--ratios", "0.5", "--repeats", "1", "--csv", str(tmp_path / "new" / "a.csv"), "--out", str(tmp_path / "o.json"))
    done = run(home, "engine.bench", "fuse", "--data", str(home / "data.jsonl"), *args, "--runs", str(tmp_path / "runs"))
    result = last_json(done)
    assert json.loads((tmp_path / "o.json").read_text()) == result
    header, *lines = (tmp_path / "new" / "a.csv").read_text().splitlines()
    assert header.startswith("sample_id,") and len(lines) == 2 * 3
    runs = [load_run(path) for path in sorted((tmp_path / "runs").iterdir())]
    assert [[method.method for method in saved.methods] for saved in runs] == [["full", "reuse", "qcfuse@0.5"]] * 2
