"""What the Chat tab says of a turn: every number is the engine's, and comparisons are fair."""

from dataclasses import replace

import pytest
from chat_fakes import STATS, fake_turn
from chat_talks import entry_of, talk_of
from fake_runs import harbour_scenario

from engine.chat.types import ChatMessage, ChatRequest
from viz import theme
from viz.panels.chat_talk import Ask, Entry, Talk
from viz.panels.chat_view import (
    SOURCES,
    compared_data,
    editing_words,
    live_data,
    mode_words,
    offer_data,
    prefix_words,
    source_parts,
    thread_data,
    time_words,
)
from viz.panels.chat_work import Running

REQUEST = ChatRequest((ChatMessage("user", "Who built it?"),), chunks=harbour_scenario().chunks()[:3], compare=True)


def compared(full_s, method_s, same=True):
    turn = fake_turn(REQUEST)
    full, method = turn.run.method("full"), turn.run.method("qcfuse")
    methods = (replace(full, ttft_s=full_s), replace(method, ttft_s=method_s, answer=full.answer if same else "Another text."))
    turn = replace(turn, run=replace(turn.run, methods=methods))
    return compared_data(Entry(Ask(REQUEST), "done", turn.answer, turn=turn, compared=turn))


def test_the_parts_of_the_bar_are_all_prompt_tokens():
    turn = fake_turn(REQUEST)
    parts = source_parts(turn)
    assert sum(part["num"] for part in parts) == turn.num_prompt_tokens and all(part["num"] for part in parts)
    assert [part["label"] for part in parts] == [SOURCES[name].label for name in SOURCES if name != "prefix computed"]


def test_no_two_sources_look_alike():
    styles = SOURCES.values()
    assert len({style.color for style in styles}) == len({style.hatch for style in styles}) == len(styles)
    assert SOURCES["chunk recomputed"].color == theme.STATE_COLORS["recomputed"]


def test_times_name_what_took_time_and_nothing_else():
    turn = fake_turn(REQUEST)
    line = time_words(turn)
    assert "probing 60 ms" in line and "recomputing 0.17 s" in line
    idle = time_words(replace(turn, parts_s=replace(turn.parts_s, probe=0.0)))
    assert "probing" not in idle


@pytest.mark.parametrize(("full_s", "method_s", "said"), [(0.9, 0.3, "3.0× faster"), (0.3, 0.9, "3.0× slower")], ids=("faster", "slower"))
def test_a_comparison_says_who_was_faster_whoever_it_was(full_s, method_s, said):
    found = compared(full_s, method_s)
    assert f"QCFuse is {said} than full prefill" in found["verdict"] and "the same text" in found["text"] and found["answer"] == ""


def test_texts_that_differ_are_both_shown():
    found = compared(0.9, 0.3, same=False)
    assert "The texts differ" in found["text"] and found["answer"].startswith("It was")


def test_nothing_is_compared_before_it_was_measured():
    assert compared_data(entry_of("One?")) is None


def test_an_answer_shows_its_chunks_with_relevance_and_what_was_cited():
    [turn] = thread_data(talk_of(entry_of("One?")))["turns"]
    assert turn["badge"] == "LIVE" and turn["ttft"] == "0.31 s" and turn["has_run"] and turn["can_compare"]
    assert "SmolLM2-135M-Instruct" in turn["details"] and "measured once" in turn["details"]


def test_full_prefill_is_not_compared_with_itself():
    request = replace(REQUEST, method="full", compare=False)
    turn = fake_turn(request)
    [shown] = thread_data(talk_of(Entry(Ask(request), "done", turn.answer, turn=turn)))["turns"]
    assert not shown["can_compare"] and shown["mode"] == "Full prefill"


def test_a_stopped_turn_keeps_its_words_and_says_why():
    [turn] = thread_data(Talk().with_entry(Entry(Ask(REQUEST), "stopped", "It was", "Stopped.")))["turns"]
    assert turn["answer"] == "It was" and turn["message"] == "Stopped." and turn["parts"] == [] and turn["badge"] == ""


def test_an_answer_cut_off_by_its_length_says_so():
    turn = replace(fake_turn(REQUEST), finish="length", num_answer_tokens=64)
    [shown] = thread_data(talk_of(Entry(Ask(REQUEST), "done", turn.answer, turn=turn)))["turns"]
    assert "ends at 64 tokens" in shown["notices"][0] and thread_data(talk_of(entry_of("One?")))["turns"][0]["notices"] == []


def test_an_empty_conversation_offers_the_librarys_questions():
    scenario = harbour_scenario()
    data = thread_data(Talk(), offer_data(scenario.title, scenario))
    assert data["offer"]["questions"][0] == scenario.questions[0].question and scenario.title in data["offer"]["title"]
    assert thread_data(talk_of(entry_of("One?")), offer_data("x", None))["offer"] is None


def test_editing_says_what_will_be_dropped():
    talk = talk_of(entry_of("One?"), entry_of("Two?"), entry_of("Three?"))
    assert editing_words(talk) == ""
    assert "Editing question 1" in editing_words(talk.edited(0)) and "2 turns behind it" in editing_words(talk.edited(0))
    assert "behind it" not in editing_words(talk.edited(2))


def test_the_line_on_the_prefix_cache_is_its_counts():
    line = prefix_words(STATS)
    assert "12 of 512 blocks of 16 tokens" in line and "320 of 512 prefix tokens" in line and "7 blocks evicted" in line
    assert "prefix cache" in prefix_words(None)


def test_a_question_on_its_way_names_its_chunks_or_why_there_are_none():
    assert live_data(Ask(REQUEST, (), ("Nothing fits.",)))["sources"] == "Nothing fits."
    assert mode_words(REQUEST) == "QCFuse, ratio 0.30" and Running().is_going_on
