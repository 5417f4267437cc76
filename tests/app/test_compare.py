"""The Compare and Claims tabs without a browser: words and tables say what the file holds, mistakes are sentences."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest
from fakes import FakeRunFiles, FakeSession
from results_samples import RATIOS, SET_SIZE, sample_results

from engine.errors import BadRequest, UnknownName
from engine.results import Difference, EqualQuality, Interval, Measure
from engine.resultsfile import dump_results, parse_results
from viz.panels.claims import ClaimsTab
from viz.panels.claims_view import MARKS
from viz.panels.compare_callbacks import CompareCallbacks
from viz.panels.compare_csv import results_csv, safe_cell
from viz.panels.compare_download import csv_file, json_file
from viz.panels.compare_tables import equal_quality_table, gain_words, measure_words, results_table, saving_words
from viz.panels.compare_view import (
    compare_banner,
    compare_view,
    find_set,
    first_methods,
    first_ratio,
    metric_choices,
    parse_pick,
    set_label,
    summary,
)
from viz.panels.page import build
from viz.panels.players import unpack

SET = sample_results()
NAME = SET.name


class BareSession(FakeSession):
    """A session without any result."""

    def results(self):
        return ()

    def results_left_out(self):
        return ("old.json is left out: it is of an older version.",)


@pytest.fixture(autouse=True)
def warnings(monkeypatch):
    """Collects what would be shown as toasts."""
    shown = []
    monkeypatch.setattr(gr, "Warning", lambda message, **_: shown.append(message))
    return shown


@pytest.fixture
def calls():
    return CompareCallbacks(FakeSession())


def skipped(value: object) -> bool:
    return isinstance(value, dict) and value.get("__type__") == "update" and len(value) == 1


def row_of(table: dict, method: str, ratio: str) -> dict[str, str]:
    row = next(row for row in table["rows"] if row["cells"][:2] == [method, ratio])
    return dict(zip(table["columns"], row["cells"], strict=True))


def test_a_row_holds_time_gain_limit_quality_and_marks():
    row = row_of(results_table(SET, ["full", "qcfuse", "qcfuse+primed"], "kl_to_full", False), "QCFuse", "0.3")
    assert row["Time to first token"] == "2.60 s (2.21 s to 3.12 s)" and row["n"] == str(SET_SIZE)
    assert row["Speed-up"].startswith("2.38× [") and row["Of the limit"] == "80 %"
    assert row["KL to full prefill"].startswith("0.115 [") and row["against full"].startswith("▼ 0.115 worse [")
    assert row["against QCFuse"] == "–"


def test_marks_say_better_worse_and_undecided_without_colour():
    table = results_table(SET, SET.methods(), "kl_to_full", False)
    assert row_of(table, "QCFuse + primed", "0.1")["against QCFuse"].startswith("▲ ")
    assert "better" in row_of(table, "QCFuse + primed", "0.1")["against QCFuse"]
    assert row_of(table, "Random", "0.1")["against QCFuse"].startswith("▼ ")
    near = next(row for row in table["rows"] if row["cells"][0] == "QCFuse CV")
    assert near["cells"][7] == "○ no clear difference"
    assert "excludes 0" in table["note"] and "none is corrected" in table["note"]


def test_a_mark_follows_the_interval_and_the_direction_of_the_metric():
    row = SET.row("epic", 0.3)
    for metric, mean, mark in (("rouge_l", 0.05, "▲"), ("rouge_l", -0.05, "▼"), ("kl_to_full", -0.05, "▲"), ("kl_to_full", 0.05, "▼")):
        one = Difference("epic", 0.3, "full", None, metric, mean, mean - 0.01, mean + 0.01, 60)
        table = results_table(replace(SET, rows=(row,), comparisons=(one,)), ["epic"], metric, False)
        assert table["rows"][0]["cells"][6].startswith(mark), metric
    assert gain_words(None, "f1") == "–" and measure_words(None, "f1") == "–" and measure_words(Measure(0.5), "f1") == "0.500"


def test_metrics_without_paired_differences_say_so():
    table = results_table(SET, ["qcfuse"], "same_answer", False)
    assert table["rows"][0]["cells"][6:8] == ["–", "–"] and "no paired differences" in table["note"]


def test_only_scenarios_offer_their_runs():
    opens = [compare_view(s, "f1", ["qcfuse"], 0.3, False).table["rows"][0]["pick"] for s in FakeSession().results()]
    assert opens == [{"method": "qcfuse", "ratio": RATIOS[0]}, None]


def test_sort_keys_are_numbers_or_nothing():
    for row in results_table(SET, SET.methods(), "kl_to_full", False)["rows"]:
        assert len(row["keys"]) == len(row["cells"]) and isinstance(row["keys"][0], str)
        assert all(key is None or isinstance(key, int | float) for key in row["keys"][1:])


def test_equal_quality_stands_beside_the_papers_claim():
    table = equal_quality_table(SET, SET.methods(), 0.3)
    rows = {row[1].split(" at ")[0]: row for row in table["rows"]}
    assert rows["CacheBlend"][2] == "▲ 18 % less [11, 24]" and rows["CacheBlend"][3] == "40 % less"
    assert "not as close" in rows["QCFuse learned + primed"][2] and "A100" in table["note"]
    assert not equal_quality_table(SET, ["qcfuse"], 0.3)["rows"] and not equal_quality_table(SET, SET.methods(), 0.1)["rows"]


def test_time_at_equal_quality_may_be_more_or_bounded_or_open():
    def words(mean, lo, hi, bound=None):
        return saving_words(EqualQuality("a", "b", 0.3, 0.1, Interval(mean, lo, hi), 60, True, 0.2, bound))

    assert words(1.3, 1.2, 1.4) == "▼ 30 % more [20, 40]"
    assert words(0.9, 0.7, 1.1) == "○ no clear difference [-10, +30 %]"
    assert words(0.6, 0.5, 0.7, "at most").startswith("▲ at least 40 % less")


def test_the_banner_names_everything_a_number_hangs_on():
    data = compare_banner(SET)
    assert (data["badge"], data["kind"]) == ("REPLAY", "replay")
    for part in ("SmolLM2-135M-Instruct", "float32", "Test CPU", "2 threads", "two-hop", "n = 60", "2,440", "2026-11-30"):
        assert part in data["details"], part
    yes_no = compare_banner(replace(SET, rows_yes_no=SET.rows[:1], skipped=3), ("One file is left out.",))
    assert len(yes_no["notices"]) == 3 and "yes or no" in yes_no["notices"][0]


def test_the_summary_tells_who_does_better():
    assert "7 of the other 13 methods are closer" in summary(SET) and "QCFuse learned + primed" in summary(SET)
    assert "None of the other 1 methods is closer" in summary(sample_results(methods=("qcfuse", "random")))
    assert "QCFuse is not among them" in summary(sample_results(methods=("epic",)))


def test_a_set_begins_with_few_methods_and_what_it_has():
    assert 3 <= len(first_methods(SET)) <= 8 and first_ratio(SET) == 0.3 and first_ratio(None) is None
    only = replace(SET, rows=tuple(replace(row, exact_match=None) for row in SET.rows))
    assert "exact_match" not in [name for _, name in metric_choices(only)]
    assert find_set((), None) is None
    with pytest.raises(UnknownName, match="two-hop"):
        find_set((SET,), "nothing")


def test_choosing_a_set_fills_every_control(calls):
    banner, metric, methods, ratio, csv_path, json_path, note, status = calls.choose(NAME, None)
    assert unpack(banner)["badge"] == "REPLAY" and metric.value == "kl_to_full" and ratio.value == 0.3
    assert ("QCFuse", "qcfuse") in methods.choices and "qcfuse" in methods.value
    assert Path(csv_path).is_file() and Path(json_path).is_file() and "python -m engine.bench" in unpack(note)
    assert unpack(status)["message"] == ""


def test_show_fills_every_output_and_an_unknown_set_is_a_sentence(calls, warnings):
    values = calls.show(NAME, None, "f1", ["full", "qcfuse"], 0.3, False)
    assert len(values) == 7 and len(values[0].data) == 3 and skipped(values[6])
    *rest, status = calls.show("nothing", None, "f1", ["qcfuse"], 0.3, False)
    assert all(skipped(value) for value in rest) and "Unknown result set" in unpack(status)["message"] and warnings
    *rest, status = calls.choose("nothing", None)
    assert all(skipped(value) for value in rest) and "Unknown" in unpack(status)["message"]


def test_a_page_without_results_says_what_to_do():
    calls = CompareCallbacks(BareSession())
    banner, *_, csv_path, json_path, _, _ = calls.choose(None, None)
    data = unpack(banner)
    assert data["badge"] == "NO RESULTS" and "engine.bench" in data["verdict"] and "left out" in data["notices"][0]
    assert csv_path is None and json_path is None
    pareto, table, costs, *_ = calls.show(None, None, "kl_to_full", [], None, False)
    assert not pareto.data and not costs.data and "open a results file" in unpack(table)["reason"]


def test_a_file_opens_beside_the_shipped_sets_and_a_bad_one_changes_nothing(calls, warnings):
    status, opened, chosen = calls.open_file(dump_results(sample_results("mine", 7)))
    assert opened.n == 7 and chosen.value == "uploaded" and unpack(status)["kind"] == "done"
    assert len(chosen.choices) == 3 and chosen.choices[-1][0].startswith("opened file: mine")
    assert len(calls.choose_opened("uploaded", opened)) == 7
    status, kept, choices = calls.open_file(b"rubbish")
    assert skipped(kept) and skipped(choices) and unpack(status)["message"].startswith("This is not a results file") and warnings
    assert unpack(calls.open_file(None)[0])["kind"] == "error"


def test_methods_can_be_ticked_at_once(calls):
    assert len(calls.all_methods(NAME, None).value) == len(SET.methods())
    assert calls.paper_methods(NAME, None).value[:3] == ["full", "reuse", "qcfuse"] and len(calls.paper_methods(NAME, None).value) == 9
    assert calls.all_methods("nothing", None).value == []


def test_a_row_finds_the_recorded_run_of_a_scenario(calls):
    scenario, method, tabs, ratio = calls.pick("fuse-scenarios", None, gr.EventData(None, {"method": "qcfuse", "ratio": 0.1}))
    assert (scenario, method.value, tabs.selected, ratio) == ("harbour", "qcfuse", "fuse", 0.1)
    assert calls.pick("fuse-scenarios", None, gr.EventData(None, {"method": "full", "ratio": None}))[3] == 0.3


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        (NAME, {"method": "qcfuse", "ratio": 0.1}, "no run of it is recorded"),
        ("fuse-scenarios", {"method": "epic", "ratio": 0.1}, "No recorded run holds EPIC"),
        ("fuse-scenarios", {"method": ["x"]}, "names no method"),
        ("fuse-scenarios", None, "names no method"),
        ("nothing", {"method": "qcfuse", "ratio": 0.1}, "Unknown result set"),
    ],
)
def test_a_row_without_a_run_is_one_sentence(calls, name, data, says):
    with pytest.raises(gr.Error, match=says):
        calls.pick(name, None, gr.EventData(None, data))


def test_what_a_client_sends_for_a_row_is_checked():
    with pytest.raises(BadRequest):
        parse_pick({"method": "qcfuse", "ratio": "much"})


def test_downloads_hold_all_rows_and_open_again():
    rows = list(csv.DictReader(io.StringIO(results_csv(SET).decode())))
    assert len(rows) == len(SET.rows) and rows[3]["method"] == SET.rows[3].method and rows[3]["model"] == "SmolLM2-135M-Instruct"
    assert float(rows[3]["kl_to_full_lo"]) == SET.rows[3].kl_to_full.lo and rows[0]["ratio"] == ""
    path = json_file(SET)
    assert parse_results(Path(path).read_bytes(), NAME) == SET
    assert Path(path).name == "fusescope-results-two-hop-SmolLM2-135M-Instruct-2026-11-30.json"
    assert Path(csv_file(replace(SET, data="../../<evil>"))).name.startswith("fusescope-results-evil")


def test_a_spreadsheet_takes_no_text_for_a_formula():
    assert safe_cell("=1+1") == "'=1+1" and safe_cell("two-hop") == "two-hop"
    assert "'=cmd" in results_csv(replace(SET, data="=cmd()")).decode()


def test_set_labels_tell_sets_apart():
    labels = [set_label(one) for one in FakeSession().results()]
    assert len(set(labels)) == 2 and "n = 10" in labels[0] and "2026-11-30" in labels[0]


def test_claims_count_what_they_show_and_take_an_opened_file():
    tab = ClaimsTab(FakeSession(), None)
    data = unpack(tab.show())
    claims = [claim for group in data["groups"] for claim in group["claims"]]
    for count in data["counts"]:
        assert count["num"] == sum(claim["findings"][0]["verdict"] == count["verdict"] for claim in claims)
    assert len(set(MARKS.values())) == len(data["counts"]) and sum(count["num"] for count in data["counts"]) == len(claims)
    assert any("two-hop · n = 60 · SmolLM2-135M-Instruct" in claim["findings"][0]["basis"] for claim in claims)
    hotpot = unpack(tab.show(sample_results("hotpotqa", 500, methods=("qcfuse", "epic"))))
    found = [f for group in hotpot["groups"] for claim in group["claims"] for f in claim["findings"]]
    assert any("hotpotqa · n = 500" in finding["basis"] for finding in found)


def test_the_page_builds_and_keeps_its_events_private():
    page = build(FakeSession(), FakeRunFiles())
    assert list(page.get_api_info()["named_endpoints"]) == ["/answer", "/compare", "/replay"]
    tabs = [block.label for block in page.blocks.values() if isinstance(block, gr.Tab)]
    assert tabs[:4] == ["Fuse", "Chat", "Play", "Evict"]
    build(BareSession(), FakeRunFiles())
