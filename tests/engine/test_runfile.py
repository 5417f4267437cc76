"""Run files: the same run comes back, bad files give one sentence, big ones stay small."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from worlds import lighthouse, tiny_runtime

from engine.compare import compare
from engine.errors import BadRunFile
from engine.runfile import dump_run, load_run, parse_run, save_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    runtime = tiny_runtime(tmp_path_factory.mktemp("cache"))
    return compare(runtime, lighthouse(max_new_tokens=4, gold_answers=("Vell",)), ("full", "reuse", "qcfuse"))


def test_saved_and_loaded_it_is_the_same(run, tmp_path):
    path = tmp_path / "a.run.json.gz"
    save_run(run, path)
    again = load_run(path)
    assert dump_run(again) == dump_run(run) == path.read_bytes()
    for mine, theirs in zip(run.methods, again.methods, strict=True):
        assert np.array_equal(mine.rows, theirs.rows) and mine.spans == theirs.spans and mine.quality == theirs.quality
    assert again.provenance == run.provenance and again.chunks == run.chunks
    assert [p.name for p in tmp_path.iterdir()] == ["a.run.json.gz"]


def damaged(run, change):
    plain = json.loads(gzip.decompress(dump_run(run)))
    change(plain)
    return gzip.compress(json.dumps(plain).encode())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(format="fusescope-run/9"), "version 'fusescope-run/9'"),
        (lambda d: d["run"].pop("tokens"), "tokens"),
        (lambda d: d["run"].update(system_len="three"), "Expected `int`"),
        (lambda d: d["run"].update(system_len=10**6), "do not fit together"),
        (lambda d: d["run"]["chunks"][0].update(stop=10**6), "outside the document part"),
        (lambda d: d["run"]["methods"][0]["rows"].update(shape=[3]), "array of shape"),
        (lambda d: d["run"]["methods"][0]["rows"].update(shape=[-1]), "array of shape"),
        (lambda d: d["run"]["methods"][0]["rows"].update(dtype="object"), "unknown type"),
        (lambda d: d["run"]["methods"][0]["rows"].update(b64="***"), "not hold a valid run"),
        (lambda d: d["run"]["methods"][2].update(scores=d["run"]["methods"][2]["kv_distance"]), "scores of"),
        (lambda d: d["run"]["methods"][2].update(kv_distance=d["run"]["methods"][2]["scores"]), "KV distances"),
        (lambda d: d["run"].update(question_span=[5, 10**7]), "span outside"),
    ],
)
def test_a_damaged_run_is_one_sentence(run, change, words):
    with pytest.raises(BadRunFile, match=words) as caught:
        parse_run(damaged(run, change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "cut short"),
        (b"not a gzip file", "not gzip-compressed"),
        (gzip.compress(b"[1, 2"), "not hold a valid run"),
        (gzip.compress(b"[" * 100_000), "not hold a valid run"),
        (gzip.compress(b'{"format": 3}'), "not hold a valid run"),
    ],
    # A gzip header holds the time, which must not get into a test's name.
    ids=["empty", "text", "broken", "deep", "other"],
)
def test_a_foreign_file_is_one_sentence(data, words):
    with pytest.raises(BadRunFile, match=words):
        parse_run(data)


def test_a_cut_file_and_a_missing_one_are_one_sentence(run, tmp_path):
    with pytest.raises(BadRunFile, match="cut short"):
        parse_run(dump_run(run)[:-20])
    with pytest.raises(BadRunFile, match="cannot be read"):
        load_run(tmp_path / "none.run.json.gz")


def test_a_bomb_is_refused():
    with pytest.raises(BadRunFile, match="unpacks to more"):
        parse_run(gzip.compress(b" " * (257 * 2**20), compresslevel=1))


def test_ten_thousand_tokens_stay_below_a_megabyte(run):
    rng, total = np.random.default_rng(0), 10_000
    system, question = 40, 9_950
    docs = question - system
    words = [f" word{rng.integers(2000)}" for _ in range(total)]
    method = run.method("qcfuse")
    big = replace(
        method,
        rows=np.sort(rng.choice(total, 3_000, replace=False)).astype(np.int32),
        ranking=(rng.permutation(docs) + system).astype(np.int32),
        scores=rng.random(docs).astype(np.float32),
        anchors=np.sort(rng.integers(0, docs, (24, 1_000))).astype(np.int32),
        kv_distance=rng.random((36, 2)).astype(np.float32),
    )
    full = replace(run.method("full"), rows=np.arange(total, dtype=np.int32), kv_distance=np.zeros((36, 2), np.float32))
    large = replace(
        run,
        num_layers=36,
        tokens=tuple(words),
        token_ids=rng.integers(0, 150_000, total).astype(np.int32),
        system_len=system,
        question_start=question,
        question_span=(9_960, 9_990),
        chunks=(),
        answer_spans=(),
        methods=(full, big),
    )
    data = dump_run(large)
    assert len(data) < 1_000_000
    assert parse_run(data).num_doc_tokens == docs
