"""What the Evict tab shows: numbers, sentences, badges and files are what the runs hold."""

from dataclasses import replace

import numpy as np
import pytest
from evict_fakes import RUNS, FakeReplays, board, cells
from evict_samples import HOSTILE, made_run, made_set
from fakes import FakeRunFiles, FakeSession

from engine.errors import BadRunFile
from engine.prefix.cachefile import dump_cache_run
from engine.replay_victims import Victim
from viz.figures.evict_capacity import capacity_points
from viz.panels.evict import WITHOUT_BASE
from viz.panels.evict_board import board_of, headline, joined, losses, notices, slim
from viz.panels.evict_callbacks import NUM_SHOWN, EvictCallbacks
from viz.panels.evict_download import write_cache_run
from viz.panels.evict_form import (
    job_of,
)
from viz.panels.evict_tables import contents_table, misses_table, results_table, victims_table
from viz.panels.evict_view import PolicyView, policy_view, rates_view, setting_view
from viz.panels.page import build
from viz.panels.players import unpack


def test_the_numbers_of_the_table_are_the_runs():
    table = cells(results_table(board()))
    for run in RUNS:
        row = table[{"lru": "LRU", "saecache": "SAECache (paper)", "sae_g": "SAE-G (ours)", "min": "MIN (sees the future)"}[run.policy]]
        assert row[0] == f"{100 * run.second_half.hit_tokens:.2f} %" and row[1] == f"{100 * run.score().hit_tokens:.2f} %"
        assert row[2] == f"{100 * run.second_half.hit_blocks:.2f} %" and row[6] == "18" and row[7] == "27.78 %"
    assert table["SAE-G (ours)"][3:6] == ["60 %", "50 ms", "−37.5 %"]
    assert table["LRU"][3] == table["LRU"][5] == table["MIN (sees the future)"][3] == "–"
    missed = cells(misses_table(board()))["SAECache (paper)"]
    assert sum(int(value.replace(",", "")) for value in missed) == 4 * 164


def test_a_policy_slower_than_lru_is_written_with_its_sign():
    row = cells(results_table(board_of((RUNS[0], made_run("saecache", 2), RUNS[3]), "recorded")))["SAECache (paper)"]
    assert row[3] == "−20 %" and row[5] == "+12.5 %"


def test_the_headline_says_who_wins_and_how_saecache_does():
    assert headline(board()) == (
        "SAE-G (ours) wins: 58.5 % of the prompt tokens come from the cache, 29.3 points more than under LRU, 60 % of the way to MIN (one "
        "seed). "
        "SAECache (paper) gains 9.8 points."
    )
    worse = board_of((RUNS[0], made_run("saecache", 2), RUNS[3]), "recorded")
    assert headline(worse).startswith("No policy beats LRU here") and headline(worse).endswith(
        "SAECache (paper) loses to LRU by 9.8 points."
    )
    behind = board_of((*RUNS, made_run("lpc", 5)), "recorded")
    assert headline(behind).endswith("SAECache (paper) gains 9.8 points, behind LPC.")
    same = board_of((RUNS[0], made_run("saecache", 3), RUNS[2], RUNS[3]), "recorded")
    assert headline(same).endswith("SAECache (paper) is no better than LRU.")
    assert headline(board_of(RUNS[1:2], "file")).startswith("SAECache (paper) finds 39.0 %")
    assert headline(board_of(tuple(slim(run) for run in RUNS), "recorded")).startswith("Everything fits")


def test_the_headline_says_how_far_seeds_differ():
    seeds = [
        made_run(name, hits + seed * more, seed) for name, hits, more in (("lru", 3, 0), ("sae_g", 6, 1), ("min", 8, 0)) for seed in (0, 1)
    ]
    assert "(+29.3 points to +39.0 points over 2 seeds)." in headline(board_of(tuple(seeds), "replayed"))
    known = [made_run(name, hits, seed) for name, hits in (("lru", 3), ("sae_g", 5)) for seed in (0, 1)]
    one = board_of(RUNS, "recorded", before=capacity_points(known))
    assert "(+19.5 points on average of 2 seeds)." in headline(one)


def test_a_live_boards_headline_has_measured_times_and_a_replays_has_none():
    assert "Measured" not in headline(board())
    live = board_of(made_set(mode="live"), "replayed")
    measured = "Measured: SAE-G (ours) takes 0.63× [0.63, 0.63] LRU's 80 ms to the first token; SAECache (paper) takes 0.88× [0.88, 0.88]"
    assert measured in headline(live)


def test_where_saecache_loses_is_said_from_the_curve(calls):
    shown = calls.open_tab(None, "balanced")[0]
    assert losses(shown) == "Where SAECache loses: with room for 30 % of this load's blocks it finds less than LRU."
    assert losses(board()) == ""


def test_points_of_more_seeds_are_kept():
    many = capacity_points([made_run("lru", 3, seed) for seed in (0, 1)])
    one = capacity_points([made_run("lru", 4)])
    assert joined(many, one) == many and joined(one, many) == many and joined(one, one) == one


def test_small_caches_and_long_prompts_are_pointed_out():
    tiny = board_of(tuple(made_run(name, 0, capacity=5) for name in ("lru", "saecache")), "replayed")
    assert notices(tiny) == ["The cache of 5 blocks is smaller than the smallest prompt (10 blocks); give it more room."]
    longer = np.array([10] * 7 + [41], np.int32)
    long = board_of(tuple(replace(run, requests=replace(run.requests, prompt_blocks=longer)) for run in RUNS), "replayed")
    assert notices(long) == ["1 of 8 prompts are longer than the cache; only their first blocks are cached."]
    mixed = board_of((RUNS[0], made_run("saecache", 4, capacity=80)), "file")
    assert "must not be compared" in notices(mixed)[0]


@pytest.mark.parametrize(
    ("mode", "origin", "badge"),
    [
        ("simulated", "recorded", "SIMULATED"),
        ("simulated", "file", "SIMULATED"),
        ("live", "replayed", "LIVE"),
        ("live", "file", "REPLAY"),
        ("live", "recorded", "REPLAY"),
    ],
)
def test_every_picture_and_table_carries_its_badge(mode, origin, badge):
    shown = board_of(made_set(mode=mode), origin)
    views = [*rates_view(shown, "tokens"), *setting_view(shown), *policy_view(shown, "saecache")]
    titles = [view.layout.title.text for view in views if hasattr(view, "layout")]
    assert len(titles) == 9 and all(f">{badge}<" in title for title in titles)
    assert shown.badge == badge and badge in results_table(shown)["caption"] and badge in misses_table(shown)["caption"]


def test_show_fills_every_output_once(calls):
    shown = board()
    values = calls.show(shown, None, None, "tokens")
    assert len(values) == NUM_SHOWN and values[0] is shown and values[1].value == "saecache"
    assert all("value" not in value for value in calls.show(shown, shown, None, "tokens"))
    empty = calls.show(None, None, None, "tokens")
    assert len(empty) == NUM_SHOWN and empty[2] is None
    assert len(calls.look(shown, "lru")) == 1 + len(PolicyView._fields) and len(calls.count(shown, "blocks")) == 4


def test_the_policy_that_was_looked_into_stays(calls):
    assert calls.show(board(), None, "sae_g", "tokens")[1].value == "sae_g"
    assert calls.show(board(), None, "gone", "tokens")[1].value == "saecache"


def test_victims_of_one_reason_are_one_row_with_the_factors(calls):
    table = unpack(calls.victims(board(), "saecache", 3.0))
    assert calls.replays.asked[0][1] == 3 and len(table["rows"]) == 1
    assert table["columns"] == ["Leaves", "What it is", "α queue", "p reuse", "Why this one", "What happened"]
    assert table["rows"][0][1:5] == [
        "response, chat queue: 3 blocks, 18 to 20 of their prompt, 0 hits",
        "0.95",
        "0.5",
        "Queue chat weighs 0.95, SYSTEM tokens 1.75.",
    ]


def test_what_happened_to_a_victim_is_the_logs_word():
    run = RUNS[1]
    found = [Victim(2, block, "user", "chat", block, 0, 1.0, f"evicted: {block}.", ()) for block in (0, 1, 2)]
    rows = victims_table(found, "saecache", run, "", "SIMULATED")["rows"]
    assert [row[-1] for row in rows] == [
        "asked for again 10.00 s later; MIN still had it: regretted",
        "asked for again 10.00 s later",
        "never asked for again",
    ]


def test_reasons_are_not_invented(calls, toasts):
    from_file = board_of(RUNS, "file")
    assert "holds no reasons" in unpack(calls.ask(from_file, "saecache", 0))["reason"]
    assert unpack(calls.ask(None, None, 0))["rows"] == []
    slow = board_of(tuple(replace(run, elapsed_s=30.0) for run in RUNS), "recorded", job_of(RUNS))
    assert "about 30 s" in unpack(calls.victims(slow, "saecache", 0))["reason"] and not calls.replays.asked
    assert unpack(calls.ask(slow, "saecache", 0))["rows"]
    failing = EvictCallbacks(FakeReplays(fail="The moment is request 9; it must be from 0 to 7."))
    assert "must be from 0 to 7" in unpack(failing.ask(board(), "saecache", 9))["reason"] and toasts


def test_a_downloaded_run_opens_again(calls):
    path = write_cache_run(calls.replays, board(), "sae_g")
    with open(path, "rb") as file:
        told, opened = calls.open_runs([file.read(), dump_cache_run(RUNS[0])])
    assert path.endswith("fusescope-made-up-sae_g-40-0.cache.json.gz")
    assert unpack(told)["message"] == "2 files are shown." and opened.origin == "file" and opened.job is None
    assert np.array_equal(opened.run("sae_g").requests.hit_blocks, RUNS[2].requests.hit_blocks)


@pytest.mark.parametrize("data", [None, b"", b"no run", dump_cache_run(made_run())[:400]])
def test_a_bad_run_file_is_one_sentence_and_keeps_what_is_shown(calls, toasts, data):
    told, kept = calls.open_runs(data)
    assert unpack(told)["kind"] == "error" and len(toasts) == 1 and "value" not in kept


def test_a_run_of_nothing_is_refused(calls):
    empty = RUNS[0].requests
    none = replace(empty, **{name: getattr(empty, name)[:0] for name in empty.__dataclass_fields__})
    bare = replace(
        slim(RUNS[0]), requests=none, limit_hit_blocks=None, snapshots=replace(RUNS[0].snapshots, request=np.zeros(3, np.int32) - 1)
    )
    told, _ = calls.open_runs(dump_cache_run(bare))
    assert "holds no requests" in unpack(told)["message"]


def test_a_hostile_file_is_shown_as_text():
    hostile = board_of(made_set(workload=HOSTILE, policy=HOSTILE, notes=(HOSTILE,), predictor=HOSTILE), "file")
    for view in (*rates_view(hostile, "tokens"), *setting_view(hostile), *policy_view(hostile, HOSTILE)):
        if hasattr(view, "to_json"):
            assert "<img" not in view.to_json() and "\\u003cimg" not in view.to_json() and "${" not in view.to_json()
    assert contents_table(hostile.first, "SIMULATED")["rows"]


def test_an_unknown_recording_is_a_sentence(monkeypatch, calls, toasts):
    def missing(self, workload):
        raise BadRunFile("The run file cannot be read.")

    monkeypatch.setattr(FakeReplays, "recorded", missing)
    opened, told, _ = calls.open_tab(None, "balanced")
    assert opened is None and unpack(told)["kind"] == "error" and toasts == ["The run file cannot be read."]


def test_the_page_drops_its_base_by_which_hatches_would_be_lost_with_every_change_of_address():
    loads = [
        event
        for event in build(FakeSession(), FakeRunFiles()).config["dependencies"]
        if any(name == "load" for _, name in event["targets"])
    ]
    assert any(event["js"] == WITHOUT_BASE and not event["backend_fn"] for event in loads)
