"""The address of a chunk: every field counts, and nothing else does."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from engine.chunks.key import ChunkKey

KEY = ChunkKey("model", "rev", "float32", "default:1.0", "system", (1, 2), (3, 4, 5), 2, 3, 4)
OTHER = {
    "model": "model2",
    "revision": "rev2",
    "dtype": "bfloat16",
    "rope": "llama3",
    "context": "alone",
    "prefix_ids": (1,),
    "token_ids": (3, 4),
    "num_layers": 3,
    "num_kv_heads": 4,
    "head_dim": 5,
}


def test_hash_is_the_same_in_every_process():
    code = (
        "from engine.chunks.key import ChunkKey; "
        "print(ChunkKey('model', 'rev', 'float32', 'default:1.0', 'system', (1, 2), (3, 4, 5), 2, 3, 4).hash)"
    )
    env = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.getcwd()}
    printed = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout.strip()
    # Pinned: a change here makes every stored chunk unreachable and needs a new FORMAT.
    assert printed == KEY.hash == "4d2754103db25f53c79c765290ed9a49"


@pytest.mark.parametrize("name", OTHER)
def test_every_field_changes_the_hash(name):
    assert name in ChunkKey.__dataclass_fields__
    assert replace(KEY, **{name: OTHER[name]}).hash != KEY.hash


def test_every_field_is_tried():
    assert set(OTHER) == set(ChunkKey.__dataclass_fields__)


def test_the_format_changes_the_hash(monkeypatch):
    before = KEY.hash
    monkeypatch.setattr("engine.chunks.key.FORMAT", "fusescope-chunk/1")
    assert KEY.hash != before


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"model": "ab", "revision": "c"}, {"model": "a", "revision": "bc"}),
        ({"model": 'a", "b', "revision": "c"}, {"model": "a", "revision": 'b", "c'}),
        ({"prefix_ids": (1, 2), "token_ids": (3,)}, {"prefix_ids": (1,), "token_ids": (2, 3)}),
        ({"token_ids": (1, 23)}, {"token_ids": (12, 3)}),
        ({"token_ids": (1, 2)}, {"token_ids": (2, 1)}),
        ({"token_ids": (0,)}, {"token_ids": (0, 0)}),
    ],
)
def test_fields_do_not_run_into_each_other(one, two):
    assert replace(KEY, **one).hash != replace(KEY, **two).hash


def test_numpy_ids_and_odd_text_are_fine():
    as_numpy = replace(KEY, token_ids=tuple(np.array([3, 4, 5])), num_layers=np.int64(2))
    assert as_numpy.hash == KEY.hash
    assert len(replace(KEY, model="caf\u00e9/\udcff").hash) == 32


@pytest.mark.parametrize(
    "bad", [{"dtype": "int8"}, {"token_ids": ()}, {"num_layers": 0}, {"num_layers": 1001}, {"num_kv_heads": 0}, {"head_dim": -1}]
)
def test_impossible_keys_are_refused(bad):
    with pytest.raises(ValueError):
        replace(KEY, **bad)
