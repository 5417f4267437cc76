"""The commands as a user types them, on a tiny model in a local folder: tables, one JSON line, one-sentence errors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.model.tiny import byte_tokenizer, tiny_hf_model

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a tiny model whose context holds a whole scenario in bytes, and a small data file."""
    home = tmp_path_factory.mktemp("home")
    model = tiny_hf_model("llama")
    model.config.max_position_embeddings = 32_768
    model.save_pretrained(home / "model")
    byte_tokenizer().save_pretrained(home / "model")
    texts = [f"Depot {i} has the gate code {4100 + i}. " + "It stands by the road. " * 6 for i in range(4)]
    passages = [{"title": f"Depot {i}", "text": text, "is_supporting": i == 2} for i, text in enumerate(texts)]
    rows = [{"id": f"s{i}", "question": f"What is gate code {i}?", "answers": ["4102"], "passages": passages} for i in range(3)]
    (home / "data.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return home


def run(home, *args):
    env = os.environ | {"FUSESCOPE_MODEL": str(home / "model"), "FUSESCOPE_CACHE": str(home / "cache"), "FUSESCOPE_THREADS": "1"}
    return subprocess.run([sys.executable, "-m", *args], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)


def last_json(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


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
    assert "speed-up" in done.stdout


def test_prefill_agrees_with_transformers(home):
    rows = last_json(run(home, "engine.bench", "prefill", "--tokens", "400,500", "--repeats", "2", "--json"))["rows"]
    assert [row["tokens"] for row in rows] == [400, 500]
    for row in rows:
        assert row["max_abs_diff"] < 1e-4
        assert row["ours_decode_tok_s"] > 0 and row["transformers_decode_tok_s"] > 0


def test_calibrate_files_a_table_that_is_then_used(home):
    data = str(home / "data.jsonl")
    result = last_json(run(home, "engine.model.calibrate", "--data", data, "--n", "3"))
    assert sorted(row["layer"] for row in result["rows"]) == [1, 2, 3]
    assert Path(result["path"]).is_file() and set(result["layers"]) <= {1, 2, 3}
    rows = last_json(run(home, "engine.bench", "fuse", "--data", data, "--n", "1", "--ratios", "0.5", "--repeats", "1", "--json"))
    assert rows["critical_layers"][0] == result["layers"][0]


def test_ask_prints_answers_tokens_and_times(home):
    options = ("--repeats", "1", "--max-new-tokens", "2", "--save", str(home / "a.run.json.gz"))
    done = run(home, "engine.ask", "--scenario", "harbour-museum", "q1", *options)
    assert done.returncode == 0, done.stderr
    for words in ("LIVE", "gold:", "full: first token after", "qcfuse: first token after", "recomputed, best first:", "ROUGE-L"):
        assert words in done.stdout
    from engine.runfile import load_run

    assert load_run(home / "a.run.json.gz").scenario == "harbour-museum"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("engine.bench", "fuse", "--methods", "full,nonsense"), "Unknown method 'nonsense'; known ones are: full"),
        (("engine.bench", "fuse", "--ratios", "0.1,x"), "--ratios is '0.1,x'"),
        (("engine.bench", "fuse", "--ratios", "nan"), "every ratio must be from 0 to 1"),
        (("engine.bench", "fuse", "--data", "none.jsonl"), "no data file"),
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


def test_a_missing_model_is_one_sentence(home):
    done = run(home / "elsewhere", "engine.ask", "--scenario", "harbour-museum", "q1")
    assert done.returncode == 2 and "Traceback" not in done.stderr and str(home / "elsewhere") in done.stderr
