"""What the player decodes of a packed run is the run: recorded ones, hostile ones, large ones."""

import json
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from fake_runs import ALL_METHODS, example_request, fake_run, injection_scenario
from launch import WAIT_MS

from engine.runfile import load_run
from engine.types import Chunk, FusionRequest, budget
from viz.player.pack import follows_from_scores, pack_run

ROOT = Path(__file__).resolve().parents[2]
RECORDED = sorted((ROOT / "assets" / "runs").glob("*.run.json.gz"))
MAX_BYTES = 1_000_000


def packed_text(run):
    return json.dumps(pack_run(run), ensure_ascii=False, separators=(",", ":"))


@pytest.fixture(scope="module")
def decoded():
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, which is not installed")

    def decode(run):
        command = [node, str(Path(__file__).with_name("dump_run.mjs"))]
        done = subprocess.run(command, input=packed_text(run), capture_output=True, text=True, check=True, timeout=WAIT_MS / 1000)
        return json.loads(done.stdout)

    return decode


def assert_same(run, seen):
    assert seen["tokens"] == list(run.tokens)
    assert seen["provenance"] == json.loads(json.dumps(asdict(run.provenance)))
    assert seen["chunks"] == [asdict(chunk) for chunk in run.chunks]
    for name in ("scenario", "question", "ratio", "num_layers", "system_len", "question_start", "chunk_context", "seed"):
        assert seen[name] == getattr(run, name), name
    assert [tuple(span) for span in seen["answer_spans"]] == list(run.answer_spans)
    assert [m["name"] for m in seen["methods"]] == [m.method for m in run.methods]
    for method, got in zip(run.methods, seen["methods"], strict=True):
        assert_same_method(run, method, got)


def assert_same_method(run, method, got):
    assert got["rows"] == sorted(method.rows.tolist())
    assert got["ttft_s"] == method.ttft_s and got["ttft_repeats_s"] == list(method.ttft_repeats_s)
    assert got["parts_s"] == asdict(method.parts_s) and got["quality"] == asdict(method.quality)
    assert got["answer"] == method.answer and got["loaded_bytes"] == method.loaded_bytes
    assert got["spans"] == [asdict(span) for span in method.spans]
    np.testing.assert_allclose(got["token_times_s"], method.token_times_s, atol=1e-6)
    for name in ("ranking", "scores", "kv_distance"):
        value = getattr(method, name)
        assert (got[name] is None) == (value is None), name
        if value is not None:
            np.testing.assert_array_equal(np.array(got[name], dtype=value.dtype), value.ravel())
    if method.anchors is not None:
        assert got["anchors"] == sorted(set(np.atleast_2d(method.anchors)[-1].tolist()))
    if method.ranking is not None:
        for ratio, rows in got["at"].items():
            picked = method.ranking[: budget(float(ratio), run.num_doc_tokens)].tolist()
            if float(ratio) != run.ratio:
                assert [p for p in rows if run.system_len <= p < run.question_start] == sorted(picked), (method.method, ratio)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.split(".")[0])
def test_every_recorded_run_comes_back_exactly(path, decoded):
    run = load_run(path)
    assert_same(run, decoded(run))
    assert len(packed_text(run).encode()) < MAX_BYTES


def test_hostile_texts_come_back_exactly(decoded):
    run = fake_run(injection_scenario().request("q1"), ALL_METHODS)
    assert_same(run, decoded(run))


def test_no_methods_and_no_scenario(decoded):
    run = replace(fake_run(FusionRequest("Why?", example_request().chunks)), methods=(), scenario=None)
    assert_same(run, decoded(run))


def test_ten_thousand_tokens_and_36_layers_with_every_method_stay_below_a_megabyte(decoded):
    run = large_run_of_all_methods()
    assert len(run.tokens) >= 10_000 and run.num_layers == 36 and len(run.methods) == len(ALL_METHODS)
    assert len(packed_text(run).encode()) < MAX_BYTES
    assert_same(run, decoded(run))


def large_run_of_all_methods():
    chunks = tuple(Chunk(f"c{i}", f"Chunk {i}", ("word " * 500).strip()) for i in range(20))
    return replace(fake_run(FusionRequest("Which word?", chunks, repeats=3), ALL_METHODS), num_layers=36)


def test_packing_is_pure():
    run = fake_run(example_request())
    assert packed_text(run) == packed_text(run)


def test_a_ranking_with_its_own_order_of_ties_is_kept(decoded):
    run = fake_run(example_request(), ("qcfuse",))
    method = run.methods[0]
    scores = np.ones_like(method.scores)
    flipped = np.arange(run.num_doc_tokens, dtype=np.int32)[::-1] + run.system_len
    changed = replace(run, methods=(replace(method, scores=scores, ranking=flipped),))
    assert not follows_from_scores(changed.methods[0], changed)
    assert_same(changed, decoded(changed))
