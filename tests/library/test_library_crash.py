"""kill -9 at fifty moments of ingest: no state is damaged, nothing that was reported as finished is lost."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from engine.library.parse.sandbox import ROOT

NUM_ROUNDS = 50


def test_no_moment_of_ingest_leaves_damage(tmp_path):
    script = Path(__file__).with_name("crash_rounds.py")
    folders = (ROOT, ROOT / "tests" / "chunks", script.parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), "OMP_NUM_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(NUM_ROUNDS), "7"], env=env, capture_output=True, text=True, timeout=240
    )
    assert told.returncode == 0, told.stderr[-2000:]
    rounds = [json.loads(line) for line in told.stdout.splitlines()]
    assert len(rounds) == NUM_ROUNDS and {one["exit"] for one in rounds} == {-signal.SIGKILL}
    for number, one in enumerate(rounds):
        assert one["problems"] == [] and one["lost"] == [] and one["kv_lost"] == [], (number, one)
    # The kills came in the midst of work: seven of eight rounds had begun, half of them had finished something.
    assert sum(one["added"] for one in rounds) >= NUM_ROUNDS // 2 and rounds[-1]["kv"] > 5
    last = subprocess.run([sys.executable, "-m", "engine.check", str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert last.returncode == 0 and json.loads(last.stdout.splitlines()[-1])["clean"] is True
    assert json.loads(last.stdout.splitlines()[-1])["num_kv_files"] > 0
