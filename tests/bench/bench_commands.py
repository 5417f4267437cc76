"""Runs the benchmarks as a user does, in a folder of their own, and builds records by hand."""

import atexit
import functools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
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


class Host:
    """A process that has imported the libraries, and starts one command at a time in a fork of itself."""

    def __init__(self):
        script = Path(__file__).with_name("command_host.py")
        env = environment(Path())
        # Unbuffered, as what has been read ahead is not seen when it is asked whether a status is there.
        self._process = subprocess.Popen([sys.executable, str(script)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._folder = tempfile.TemporaryDirectory(prefix="commands-")
        atexit.register(self.close)

    def start(self, home, module, *args, cache="cache"):
        files = {name: str(Path(self._folder.name) / name) for name in ("output", "errors")}
        for file in files.values():
            Path(file).write_bytes(b"")
        job = {"module": module, "args": args, "folder": str(ROOT), "env": environment(home, cache), **files}
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        return Command(int(self._process.stdout.readline()), self._process.stdout, files)

    def close(self):
        self._process.stdin.close()
        self._process.wait(20)
        self._folder.cleanup()


class Command:
    """A command that a host has started."""

    def __init__(self, pid, statuses, files):
        self.pid, self._statuses, self._files = pid, statuses, files

    def is_running(self):
        return not select.select([self._statuses], [], [], 0)[0]

    def send_signal(self, how):
        os.kill(self.pid, how)

    def finish(self, timeout_s=300):
        """Returns the status, output and errors of the command once it has ended."""
        if not select.select([self._statuses], [], [], timeout_s)[0]:
            self.send_signal(signal.SIGKILL)
        status, texts = int(self._statuses.readline()), {name: Path(file).read_text() for name, file in self._files.items()}
        return subprocess.CompletedProcess(self.pid, status, texts["output"], texts["errors"])


@functools.cache
def host():
    return Host()


def run(home, *args, cache="cache"):
    """Runs a command in a fork of a process that has imported what is not ours, which takes most of a command's time."""
    return host().start(home, *args, cache=cache).finish()


def run_alone(home, *args, cache="cache"):
    """Runs a command in a process of its own from the first import on."""
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
