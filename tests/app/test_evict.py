"""The Evict tab without a browser: forms become replays, mistakes are sentences, what is shown is what the runs hold."""

from dataclasses import replace

import pytest
from evict_fakes import FORM, RUNS, FakeReplays, board
from evict_samples import made_set

from engine.errors import BadRequest
from viz.panels.evict_board import board_of, slim
from viz.panels.evict_callbacks import EvictCallbacks
from viz.panels.evict_form import (
    OWN_LOG,
    SWEEP_SHARES,
    WORKLOADS,
    Job,
    job_of,
    parse_capacity,
    parse_job,
    policy_choices,
    workload_choices,
)
from viz.panels.players import unpack


@pytest.mark.parametrize(
    ("text", "capacity"),
    [
        ("5 %", 0.05),
        ("5%", 0.05),
        ("0.05", 0.05),
        ("4000", 4000.0),
        ("4,000 blocks", 4000.0),
        (" 1 block ", 1.0),
        ("0.5 %", 0.005),
        (3, 3.0),
    ],
)
def test_a_capacity_is_a_share_or_a_number_of_blocks(text, capacity):
    assert parse_capacity(text) == pytest.approx(capacity)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a number"),
        ("much", "'much' is not a number"),
        ("nan", "is not a number"),
        ("inf", "is not a number"),
        ("1e999", "is not a number"),
        (None, "is not a number"),
        ("5 % of it", "is not a number"),
        ("0", "must hold at least one block"),
        ("0 %", "must hold at least one block"),
        ("-3", "must hold at least one block"),
        ("0.5 blocks", "must hold at least one block"),
        ("100 %", "below 100 %"),
    ],
)
def test_a_bad_capacity_is_one_sentence(text, said):
    with pytest.raises(BadRequest, match=said) as raised:
        parse_capacity(text)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 200


def test_lru_and_min_are_always_replayed_every_seed_in_turn():
    job = parse_job(FakeReplays(), *FORM[:4], 2, "always right")
    assert [(r.policy, r.seed) for r in job.requests] == [(p, s) for s in (0, 1) for p in ("lru", "sae_g", "saecache", "min")]
    assert {(r.workload, r.capacity, r.accuracy) for r in job.requests} == {("balanced", 0.05, 1.0)}
    alone = parse_job(FakeReplays(), "balanced", None, "5 %", [], 1, "none")
    assert [r.policy for r in alone.requests] == ["lru", "min"] and alone.requests[0].accuracy is None
    sweep = parse_job(FakeReplays(), *FORM, sweep=True)
    assert {r.capacity for r in sweep.requests} == set(SWEEP_SHARES) and sweep.is_sweep


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (0, "../../etc/passwd", "is not known"),
        (0, OWN_LOG, "No log was opened"),
        (0, None, "is not known"),
        (3, ["belady"], "'belady' is not known"),
        (4, 9, "give 1 to 5"),
        (4, "many", "give 1 to 5"),
        (5, "magic", "'magic' is not known"),
    ],
)
def test_a_bad_form_is_one_sentence_and_no_job(calls, toasts, place, value, said):
    form = [*FORM]
    form[place] = value
    told, job, _ = calls.begin(None, *form)
    assert job is None and unpack(told)["kind"] == "error" and said in unpack(told)["message"] and said in toasts[0]


def test_a_path_is_only_ever_the_visitors_upload():
    assert parse_job(FakeReplays(), OWN_LOG, "/tmp/up/mine.jsonl", "5 %", [], 1, "none").requests[0].workload == "/tmp/up/mine.jsonl"
    with pytest.raises(BadRequest):
        parse_job(FakeReplays(), "/tmp/up/mine.jsonl", "/tmp/up/mine.jsonl", "5 %", [], 1, "none")


def test_what_is_offered_is_what_there_is():
    names = [name for _, name in workload_choices(FakeReplays())]
    assert names == ["balanced", "tool_use", "brand_new"]
    assert [name for _, name in workload_choices(FakeReplays(), "x")][-1] == OWN_LOG
    assert "loses" in dict((name, label) for label, name in workload_choices(FakeReplays()))["tool_use"]
    assert [name for _, name in policy_choices(FakeReplays())] == ["sae_g", "saecache", "lpc"]


def test_listed_loads_exist():
    from engine.prefix.workloads.catalog import workload_names

    assert set(WORKLOADS) == set(workload_names())


def test_a_replay_yields_progress_and_then_one_board(calls):
    told, job, running = calls.begin(None, *FORM)
    assert unpack(told)["kind"] == "busy"
    steps = list(calls.run(job, running, None))
    assert [unpack(step[0])["kind"] for step in steps] == ["busy"] * 4 + ["done"]
    new = steps[-1][1]
    assert [run.policy for run in new.runs] == ["lru", "sae_g", "saecache", "min"] and new.origin == "replayed" and new.job is job
    assert new.badge == "SIMULATED" and calls.replays.num_closed == 1


def test_a_replay_that_fails_keeps_what_is_shown(toasts):
    calls = EvictCallbacks(FakeReplays(fail="The log mine.jsonl, line 3: time goes back; sort it."))
    *_, (told, kept) = calls.run(*calls.begin(None, *FORM)[1:], board())
    assert unpack(told)["kind"] == "error" and "line 3" in unpack(told)["message"] and toasts
    assert isinstance(kept, dict) and kept["__type__"] == "update" and "value" not in kept


def test_closing_a_replay_closes_the_session(calls):
    steps = calls.run(*calls.begin(None, *FORM)[1:], None)
    next(steps)
    steps.close()
    assert calls.replays.num_closed == 1 and len(calls.replays.asked) == 1


def test_what_is_asked_anew_overtakes_what_runs_and_stop_stops_it(calls):
    _, job, first = calls.begin(None, *FORM)
    old = calls.run(job, first, None)
    next(old)
    _, _, second = calls.begin(first, *FORM)
    assert first.is_set() and not second.is_set()
    assert all("value" not in value for *_, step in [list(old)] for value in step) and calls.replays.num_closed == 1
    assert "Stopped" in unpack(calls.stopped(second))["message"] and second.is_set()
    assert len(list(calls.run(job, second, None))) == 1


def test_a_job_is_begun_once_however_many_events_hear_of_it(calls):
    _, job, running = calls.begin(None, *FORM)
    assert len(list(calls.run(job, running, None))) == 5 and len(list(calls.run(job, running, None))) == 1
    assert len(calls.replays.asked) == 4


def test_a_form_that_does_not_hold_stops_nothing(calls):
    running = calls.begin(None, *FORM)[2]
    assert calls.begin(running, "nothing", *FORM[1:])[1] is None and not running.is_set()
    calls.choose(running, *FORM)
    assert running.is_set()


def test_nobody_asks_for_victims_that_are_not_looked_at(calls):
    assert "value" not in calls.victims(board(), "saecache", 3, False) and not calls.replays.asked


def test_without_a_job_nothing_happens(calls):
    assert len(list(calls.run(None, None, None))) == 1 and not calls.replays.asked


def test_later_seeds_are_kept_without_their_evictions(calls):
    *_, (_, new) = calls.run(*calls.begin(None, *FORM[:4], 2, FORM[5])[1:], None)
    assert [len(run.evictions.block) for run in new.runs if run.policy == "saecache"] == [18, 0]
    assert slim(RUNS[1]).second_half == RUNS[1].second_half


def test_the_slider_asks_for_its_share_and_its_rates_stay_on_the_curve(calls):
    old = board()
    *_, (_, new) = calls.run(*calls.slide(None, "balanced", None, 20, *FORM[3:])[1:], old)
    assert {run.capacity_blocks for run in new.runs} == {80}
    assert {point.share for point in new.points} == {0.1, 0.2} and new.curve.share == 0.2
    other = board_of(made_set(workload="another"), "recorded")
    *_, (_, fresh) = calls.run(*calls.slide(None, "balanced", None, 20, *FORM[3:])[1:], other)
    assert {point.share for point in fresh.points} == {0.2}


def test_a_sweep_adds_to_the_curve_and_leaves_the_rest(calls):
    old = board()
    *_, (_, new) = calls.run(*calls.sweep(None, *FORM)[1:], old)
    assert new.runs is old.runs and len({point.share for point in new.points}) == len(SWEEP_SHARES)
    *_, (_, first) = calls.run(*calls.sweep(None, *FORM)[1:], None)
    assert len({run.capacity_blocks for run in first.runs}) == 1 and first.curve is not None


def test_opening_the_tab_shows_the_recorded_runs_once(calls):
    opened, told, slider = calls.open_tab(None, "balanced")
    assert opened.origin == "recorded" and "Recorded" in unpack(told)["message"] and slider.value == 10.0
    assert all("value" not in value for value in calls.open_tab(opened, "balanced"))


def test_choosing_a_load_shows_its_record_or_replays_it(calls):
    shown, _, capacity, _, job, running = calls.choose(None, *FORM)
    assert shown.origin == "recorded" and capacity == "10 %" and job is running is None
    *_, told, job, running = calls.choose(None, "tool_use", *FORM[1:])
    assert isinstance(job, Job) and unpack(told)["kind"] == "busy"


def test_recorded_runs_are_asked_for_with_their_own_settings():
    job = job_of(tuple(replace(run, params={"temperature": 0.5}) for run in RUNS))
    request = job.of("saecache")
    assert (request.workload, request.capacity, request.accuracy, request.params) == ("made-up", 40, 0.77, {"temperature": 0.5})
    assert job_of((replace(RUNS[0], predictor="oracle"),)).requests[0].accuracy == 1.0
    assert job_of((replace(RUNS[0], predictor="none"),)).requests[0].accuracy is None
