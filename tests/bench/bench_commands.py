"""Runs the benchmarks as a user does, in a folder of their own, and builds records by hand."""

import json
import os
import subprocess
import sys
from pathlib import Path

from engine.bench.records import Build, MethodRecord, SampleRecord

ROOT = Path(__file__).resolve().parents[2]


def command(*args):
    return [sys.executable, "-m", *args]


def environment(home, cache="cache"):
    return os.environ | {
        "FUSESCOPE_MODEL": str(home / "model"),
        "FUSESCOPE_CACHE": str(home / cache),
        "FUSESCOPE_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        # Two processes on a busy machine may time their products differently, and then differ in the last digits.
        "FUSESCOPE_PRODUCTS": "torch",
    }


def run(home, *args, cache="cache"):
    env = environment(home, cache)
    return subprocess.run(command(*args), cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)


def last_json(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def method_record(label, ttft_s, kl, **change):
    values = {
        "label": label,
        "context": "" if label == "full" else "system",
        "ttft_s": ttft_s,
        "parts_s": {"probe": 0.0, "select": 0.0, "load_wait": 0.0, "recompute": ttft_s, "head": 0.0},
        "loaded_bytes": 0 if label == "full" else 1_000_000,
        "rows_share": 1.0,
        "kv_keys": None,
        "kv_values": None,
        "rouge_l": None,
        "f1": None,
        "exact_match": None,
        "answered": None,
        "same_answer": None,
        "gold_nll": None,
        "kl_to_full": kl,
        "span_recall": None,
        "answer": None,
    }
    return MethodRecord(**values | change)


def sample_record(index, *methods, is_yes_no=False, builds=None):
    builds = builds or {"system": Build(2.0, 100, 3_000_000)}
    return SampleRecord(index, f"s{index}", is_yes_no, 100, 10, methods, builds, 0, 0.0, "abc")
