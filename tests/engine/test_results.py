"""Result files: what was written is read back, and every broken file is one sentence."""

import json
from dataclasses import replace

import pytest
from results_samples import RATIOS, SHAPES, sample_results

from engine.errors import BadResultsFile
from engine.results import METRICS, Measure, metric_of
from engine.resultsfile import FORMAT, MAX_BYTES, dump_results, load_folder, load_results, parse_results

SET = sample_results()


def plain() -> dict:
    return json.loads(dump_results(SET))


def broken(**changes: object) -> bytes:
    return json.dumps({**plain(), **changes}).encode()


def with_row(**changes: object) -> bytes:
    found = plain()
    found["rows"][3].update(changes)
    return json.dumps(found).encode()


def test_a_set_comes_back_as_it_was_written_labelled_as_recorded():
    found = parse_results(dump_results(SET), SET.name)
    assert found == SET and found.provenance.mode == "replay"
    assert plain()["format"] == FORMAT and "name" not in plain()


def test_a_live_file_is_shown_as_a_recording():
    found = plain()
    found["provenance"]["mode"] = "live"
    assert parse_results(json.dumps(found).encode()).provenance.mode == "replay"


def test_fields_of_later_versions_of_the_benchmark_are_passed_over():
    assert parse_results(broken(peak_memory_gib=3.2, resumed=0, left_out_methods=[]), SET.name) == SET


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a results file"),
        (dump_results(SET)[:5000], "not a results file"),
        (b"[1, 2]", "not a results file"),
        (b"\x00\xff", "not a results file"),
        (b"[" * 100_000, "not a results file"),
        (b" " * (MAX_BYTES + 1), "at most"),
        (broken(format="fusescope-results/2"), "version 'fusescope-results/2'"),
        (broken(format=""), "measure again"),
        (broken(bench="prefill"), "benchmark 'prefill'"),
        (broken(rows=[]), "0 rows"),
        (broken(rows={}), "valid results"),
        (broken(n="many"), "valid results"),
        (broken(command="x" * 3000), "more than 2,000"),
        (broken(provenance=None), "valid results"),
        (with_row(ratio=1.5), "ratios are 0 to 1"),
        (with_row(n=0), "has n 0"),
        (with_row(ttft_s={"median": 1.0, "min": 2.0, "max": 3.0}), "times 2 to 3"),
        (with_row(ttft_s={"median": 0.0, "min": 0.0, "max": 0.0}), "times 0 to 0"),
        (with_row(ttft_s=1.0), "valid results"),
        (with_row(kl_to_full={"mean": 0.1, "lo": 0.2, "hi": 0.1}), "ends before it begins"),
        (with_row(method="<img src=x>"), "letters, digits"),
        (with_row(method="=cmd()"), "letters, digits"),
        (with_row(method="full", ratio=None), "twice"),
        (dump_results(SET).replace(b"6.2", b"NaN", 1), "not a results file"),
    ],
)
def test_a_broken_file_is_one_sentence(data, says):
    with pytest.raises(BadResultsFile) as error:
        parse_results(data)
    assert says in str(error.value) and len(str(error.value)) < 400 and "\n" not in str(error.value)


def test_a_folder_gives_its_sets_and_says_what_it_left_out(tmp_path):
    (tmp_path / "b.json").write_bytes(dump_results(SET))
    (tmp_path / "a.json").write_bytes(dump_results(sample_results("scenarios", 10)))
    (tmp_path / "old.json").write_text('{"bench": "fuse", "rows": []}')
    (tmp_path / "prefill.json").write_text('{"bench": "prefill", "rows": []}')
    (tmp_path / "notes.txt").write_text("no results")
    found = load_folder(tmp_path)
    assert [one.name for one in found.sets] == ["a", "b"]
    assert len(found.problems) == 1 and found.problems[0].startswith("old.json is left out")
    assert load_folder(tmp_path / "nothing").sets == ()


def test_a_file_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(BadResultsFile, match="cannot be read"):
        load_results(tmp_path / "none.json")
    (tmp_path / "one.json").write_bytes(dump_results(SET))
    assert load_results(tmp_path / "one.json").name == "one"


def test_rows_are_found_by_method_and_ratio():
    assert SET.ratios() == RATIOS and len(SET.methods()) == len(SHAPES) + 3
    assert SET.row("qcfuse", 0.1).ratio == 0.1 and SET.row("qcfuse", 0.15) is None
    assert SET.row("full", 0.1).ratio is None and SET.row("none") is None
    assert [row.ratio for row in SET.of_method("epic")] == list(RATIOS)


def test_a_measure_has_its_interval_where_the_file_has_one():
    row = SET.row("qcfuse", 0.3)
    assert row.measure("kl_to_full") == Measure(row.kl_to_full.mean, row.kl_to_full.lo, row.kl_to_full.hi)
    assert row.measure("rouge_l").lo == row.intervals["rouge_l"].lo
    assert row.measure("same_answer") == Measure(row.same_answer)
    assert replace(row, rouge_l=None).measure("rouge_l") is None
    assert all(metric_of(metric.name) is metric for metric in METRICS)


def test_differences_are_those_at_the_same_ratio():
    row = SET.row("qcfuse", 0.3)
    assert SET.difference(row, "full", "rouge_l").versus_ratio is None
    assert SET.difference(row, "epic", "rouge_l").versus_ratio == 0.3
    assert SET.difference(SET.row("epic", 0.3), "qcfuse", "rouge_l") is None
