"""A policy that someone drops into the folder is found, listed and held to the same laws."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOY = '''
"""MRU: the youngest leaf leaves first."""
from dataclasses import dataclass
from typing import ClassVar
from engine.prefix.policy import POLICIES, EvictionPolicy, OrderedRanker


@POLICIES.register("toy_mru")
@dataclass(frozen=True)
class ToyMRU(EvictionPolicy):
    name: ClassVar[str] = "toy_mru"

    def ranker(self, columns, capacity, future=None):
        return ToyRanker(columns)


class ToyRanker(OrderedRanker):
    def entry(self, block):
        return (-self.columns.scalars.tick[block], block)
'''
RUN = """
import sys, pytest
import engine.prefix.policies as policies
from engine.registry import import_modules
folder = sys.argv[1]
policies.__path__.append(folder)
import_modules("engine.prefix.policies", [folder])
assert "toy_mru" in policies.POLICIES.names()
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "tests/prefix/test_prefix_laws.py", "-k", "toy_mru"]))
"""


def test_a_new_file_is_in_the_matrix_by_existing(tmp_path):
    (tmp_path / "toy_mru.py").write_text(TOY)
    done = subprocess.run([sys.executable, "-c", RUN, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "passed" in done.stdout and "no tests ran" not in done.stdout
    assert int(done.stdout.split(" passed")[0].split()[-1]) >= 14
