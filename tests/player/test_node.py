"""Runs the player's own tests (tests/player/*.test.mjs) with node, which needs no package for them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from launch import WAIT_MS

HERE = Path(__file__).resolve().parent
TESTS = sorted(HERE.glob("*.test.mjs"))
MIN_VERSION = 20


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.removesuffix(".test.mjs"))
def test_the_players_own_tests_pass(path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, which is not installed")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").split(".")[0]) < MIN_VERSION:
        pytest.skip(f"needs node {MIN_VERSION} or newer; this is {version}")
    done = subprocess.run([node, "--test", str(path)], capture_output=True, text=True, check=False, timeout=WAIT_MS / 1000)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_such_tests():
    assert TESTS
