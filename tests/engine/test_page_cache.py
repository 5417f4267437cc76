"""With the page cache dropped, every timed prefill that reads stored chunks asks the system to forget them first."""

import pytest
from worlds import TEXTS, lighthouse, tiny_runtime

from engine.chunks.file import StoredChunk
from engine.compare import compare


@pytest.mark.parametrize(("page_cache", "rounds"), [("kept", 0), ("dropped", 2), ("direct", 2)])
def test_pages_are_dropped_before_each_prefill_that_reads(tmp_path, monkeypatch, page_cache, rounds):
    dropped = []
    drop = StoredChunk.drop_pages
    monkeypatch.setattr(StoredChunk, "drop_pages", lambda chunk: (dropped.append(chunk.hash), drop(chunk)))
    run = compare(tiny_runtime(tmp_path, page_cache=page_cache), lighthouse(max_new_tokens=2, repeats=2), ("full", "reuse"))
    # Every passage and the system part, for direct reuse alone: full prefill reads none.
    assert len(dropped) == rounds * (len(TEXTS) + 1) and len(set(dropped)) == (len(TEXTS) + 1 if rounds else 0)
    said = {"kept": "not dropped", "dropped": "dropped", "direct": ("passed by", "dropped before every timed prefill")}
    assert run.provenance.page_cache.startswith(said[page_cache])


def test_where_reads_cannot_pass_the_cache_by_a_run_says_so_and_drops_it(tmp_path, monkeypatch):
    monkeypatch.delattr("os.O_DIRECT")
    runtime, dropped = tiny_runtime(tmp_path, page_cache="direct"), []
    monkeypatch.setattr(StoredChunk, "drop_pages", lambda chunk: dropped.append(chunk.hash))
    run = compare(runtime, lighthouse(max_new_tokens=2), ("reuse",))
    assert len(dropped) == len(TEXTS) + 1
    assert run.provenance.page_cache.startswith("dropped") and "as this system has no O_DIRECT" in run.provenance.page_cache
