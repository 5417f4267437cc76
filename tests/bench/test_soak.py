"""The soak: what it sends, what it counts, and a short one on the app with a tiny model."""

from dataclasses import replace

import pytest
from bench_commands import last_json, run_alone

from engine.bench.soak import report, slope_per_100
from engine.bench.soak_work import KINDS, MIX, Done, Work, chats, perform, plan, replay_work

CHAT = Work("chat", "chat 0", {})


def test_what_is_sent_is_drawn_by_the_seed_in_the_given_mix():
    known = chats(3)
    work = plan(3, 2000, known)
    assert work == plan(3, 2000, chats(3)) and work != plan(4, 2000, chats(3))
    for kind in KINDS:
        share = sum(item.kind == kind for item in work) / len(work)
        assert share == pytest.approx(MIX[kind] / 100, abs=0.03), kind
    assert {item.fields["fusion"]["method"] for item in known} == {"qcfuse", "full", "reuse", "epic"}
    assert any(item.fields["fusion"]["method"] == "qcfuse" and item.fields["documents"] for item in known)
    assert {len(item.fields["messages"]) for item in known} == {1, 3} and {len(item.fields["documents"]) for item in known} == {0, 1, 2, 3}


def test_errors_mismatches_and_quota_answers_are_counted_apart():
    good = Done(CHAT, 1.0, "yes", 0.5)
    finished = [good, replace(good, answer="no"), Done(CHAT, 1.0, error="chat: broken"), Done(CHAT, 0.1, is_quota=True)]
    found = report(finished, {"chat 0": "yes"}, [100.0, 100.0, 101.0, 102.0])
    assert (found["requests"], found["errors"], found["mismatches"], found["quota_answers"], found["compared"]) == (4, 1, 1, 1, 2)
    assert found["checks"] == {"no_error": False, "every_answer_as_alone": False} and found["p95_wait_s"] == 0.5
    assert "broken" in found["examples"][0] and "'no'" in found["examples"][1]
    row = next(row for row in found["rows"] if row["kind"] == "chat")
    assert (row["n"], row["errors"], row["quota_answers"], row["p50_s"]) == (4, 1, 1, 1.0)


def test_memory_is_a_slope_behind_the_warm_up():
    assert slope_per_100([50.0 + 0.02 * i for i in range(300)]) == pytest.approx(2.0)
    assert slope_per_100([7.0] * 9) == pytest.approx(0.0) and slope_per_100([1.0, 2.0]) is None
    grown = report([], {}, [0.0] * 100 + [80.0] * 200)
    assert grown["rss_slope_mb_per_100"] == pytest.approx(0.0) and (grown["rss_mb"][0], grown["rss_mb"][-1]) == (0.0, 80.0)
    assert len(grown["rss_mb"]) == 21 and report([], {}, [])["rss_mb"] == []


def test_a_server_that_is_not_there_is_an_error_and_not_an_exception():
    import httpx

    with httpx.Client(base_url="http://127.0.0.1:9", trust_env=False) as nobody:
        for work in (CHAT, replay_work(), *plan(0, 20, chats(0))):
            assert perform(work, nobody).error


def test_a_short_soak_finds_every_answer_as_given_alone(home):
    found = last_json(run_alone(home, "engine.bench", "soak", "--requests", "32", "--clients", "4", "--json"))
    assert (found["requests"], found["errors"], found["mismatches"]) == (32, 0, 0), found["examples"]
    assert found["compared"] > 12 and found["rss_slope_mb_per_100"] is not None and found["p95_wait_s"] >= 0
    assert {row["kind"] for row in found["rows"]} == set(KINDS) and found["provenance"]["model"]


@pytest.mark.parametrize("words", [["--clients", "0"], ["--clients", "100"], ["--requests", "3"]], ids=" ".join)
def test_a_bad_call_is_one_sentence(home, words):
    done = run_alone(home, "engine.bench", "soak", *words)
    assert done.returncode == 2 and done.stderr.strip().endswith(".") and "Traceback" not in done.stderr
