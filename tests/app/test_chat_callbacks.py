"""Callbacks of the conversation over a fake session: nothing is lost, whatever happens to an answer."""

from types import SimpleNamespace

import gradio as gr
import pytest
from chat_talks import entry_of, talk_of
from fakes import FakeSession

from viz.panels.chat_callbacks import BUSY, ChatCallbacks
from viz.panels.chat_talk import Ask, Talk
from viz.panels.chat_work import Running
from viz.panels.players import unpack

pytestmark = pytest.mark.usefixtures("toasts")
VISITOR = SimpleNamespace(session_hash="me")
SETTINGS = ("alpine-railway", "qcfuse", 0.3, 3, 64, 0.0, 0, "")


@pytest.fixture(scope="module")
def session():
    return FakeSession(kv_delay_s=None)


@pytest.fixture
def calls(session):
    return ChatCallbacks(session, ("lru", "saecache"))


def skipped(value):
    return isinstance(value, dict) and value.get("__type__") == "update" and len(value) == 1


def event(**data):
    return SimpleNamespace(_data=data)


def asked(calls, question, talk=None):
    return calls.begin(VISITOR, talk, None, question, *SETTINGS)


def answered(calls, question, talk=None):
    """Returns the conversation after a question, and all that was yielded."""
    begun = asked(calls, question, talk)
    yields = list(calls.answer(*begun[:3]))
    return yields[-1][0], yields


def test_a_question_leaves_the_box_and_its_answer_joins_the_conversation(calls):
    talk, ask, running, thread, live, _, box, send, stop = asked(calls, "Who was the founder of the railway?")
    assert box == "" and not send.interactive and stop.interactive and running.is_going_on
    assert unpack(live)["question"] == "Who was the founder of the railway?" and unpack(thread)["turns"] == []
    talk, none, thread, live, send, stop, prefix = list(calls.answer(talk, ask, running))[-1]
    assert none is None and live is None and send.interactive and not stop.interactive and not running.is_going_on
    [turn] = unpack(thread)["turns"]
    assert turn["state"] == "done" and turn["answer"].startswith("The notes say") and len(turn["sources"]) == 3
    assert [source["cited"] for source in turn["sources"]] == [True, False, False]
    assert all("relevance" in source["facts"] for source in turn["sources"]) and "blocks of 16 tokens" in unpack(prefix)


def test_the_answer_grows_while_it_is_awaited(calls, monkeypatch):
    monkeypatch.setattr("viz.panels.chat_callbacks.MIN_GAP_S", 0.0)
    _, yields = answered(calls, "Who was the founder of the railway?")
    grown = [unpack(values[3])["answer"] for values in yields[:-1]]
    assert grown == sorted(grown, key=len) and len(set(grown)) > 5 and yields[-1][0].entries[0].answer == grown[-1]


def test_the_next_question_comes_with_what_was_said_before(calls):
    talk, _ = answered(calls, "Who was the founder of the railway?")
    talk, _ = answered(calls, "And what did she do?", talk)
    messages = talk.entries[1].ask.request.messages
    assert [message.role for message in messages] == ["user", "assistant", "user"]
    assert talk.entries[1].turn.num_prefix_hits > talk.entries[0].turn.num_prefix_hits


def test_an_empty_question_is_a_sentence_and_changes_nothing(calls, toasts):
    talk, ask, running, *_, told, box, send, stop = asked(calls, "  ")
    assert ask is None and "question is empty" in unpack(told)["message"] and toasts
    assert all(skipped(value) for value in (talk, running, box, send, stop))
    assert all(skipped(value) for value in next(calls.answer(None, None, None)))


def test_an_engine_error_is_its_sentence_and_the_next_question_is_answered(calls):
    talk, _ = answered(calls, "Will the railway fail?")
    [entry] = talk.entries
    assert entry.outcome == "failed" and entry.message.startswith("The chunk store is full") and entry.answer == "The"
    talk, _ = answered(calls, "Who was the founder of the railway?", talk)
    assert [one.outcome for one in talk.entries] == ["failed", "done"] and len(talk.entries[1].ask.request.messages) == 1


def test_stop_keeps_the_words_there_are(calls):
    talk, ask, running, *_ = asked(calls, "A railway that never ends?")
    yields = calls.answer(talk, ask, running)
    while running.is_going_on:
        values = next(yields)
        if not skipped(values[3]) and unpack(values[3])["answer"].endswith("knows."):
            calls.stopped(running)
    [entry] = list(yields)[-1][0].entries if not isinstance(values[0], Talk) else values[0].entries
    assert entry.outcome == "stopped" and entry.answer.endswith("knows.") and "not part of the conversation" in entry.message


def test_a_new_conversation_drops_an_answer_on_its_way(calls):
    talk, ask, running, *_ = asked(calls, "A railway that never ends?")
    yields = calls.answer(talk, ask, running)
    next(yields)
    fresh, none, gone, thread, live, _, box, send, _ = calls.new(running, "alpine-railway")
    assert none is None and gone is None and fresh.name != talk.name and live is None and box == "" and send.interactive
    assert all(skipped(value) for value in list(yields)[-1])
    offered = unpack(thread)["offer"]
    assert offered["questions"] and unpack(thread)["turns"] == []


def test_one_question_at_a_time(calls):
    running = Running()
    for values in (
        calls.begin(VISITOR, None, running, "Who?", *SETTINGS),
        calls.edit(event(turn=0), talk_of(entry_of("One?")), running),
        calls.retry(VISITOR, talk_of(entry_of("One?")), running, "", *SETTINGS),
    ):
        assert not isinstance(values[1], Ask) and unpack(values[5])["message"] == BUSY and skipped(values[0])
    assert unpack(calls.compare(event(turn=0), talk_of(entry_of("One?")), running)[2])["message"] == BUSY


def test_retry_asks_the_last_question_again_and_a_form_that_does_not_hold_keeps_its_answer(calls):
    talk = talk_of(entry_of("One?"), entry_of("Who was the founder of the railway?"))
    after, ask, *_ = calls.retry(VISITOR, talk, None, "typed meanwhile", *SETTINGS)
    assert ask.request.question == "Who was the founder of the railway?" and [one.question for one in after.entries] == ["One?"]
    kept, ask, *_ = calls.retry(VISITOR, talk, None, "", "alpine-railway", "magic", *SETTINGS[2:])
    assert ask is None and skipped(kept)


def test_an_earlier_question_is_edited_and_an_empty_box_leaves_it(calls):
    talk = talk_of(entry_of("One?"), entry_of("Two?"))
    editing, _, _, thread, _, told, box, *_ = calls.edit(event(turn=0), talk, None)
    assert box == "One?" and unpack(thread)["editing"] == 0 and "drops its answer and the turn behind it" in unpack(told)["message"]
    left, ask, *_ = calls.begin(VISITOR, editing, None, "", *SETTINGS)
    assert ask is None and left.editing is None and len(left.entries) == 2
    sent, ask, *_ = calls.begin(VISITOR, editing, None, "Who was the founder?", *SETTINGS)
    assert sent.entries == () and len(ask.request.messages) == 1
    assert "not part of the conversation" in unpack(calls.edit(event(turn="x"), talk, None)[5])["message"]


def test_a_question_on_offer_is_asked(calls):
    _, ask, *_ = calls.ask(event(question="What is the altitude?"), VISITOR, None, None, "typed", *SETTINGS)
    assert ask.request.question == "What is the altitude?"
    assert calls.ask(event(), VISITOR, None, None, "typed", *SETTINGS)[1] is None


def test_a_comparison_measures_both_and_joins_its_answer(calls):
    talk, _ = answered(calls, "Who was the founder of the railway?")
    index, running, *_ = calls.compare(event(turn=0), talk, None)
    talk, thread, told, *_ = list(calls.compared(talk, index, running))[-1]
    turn = unpack(thread)["turns"][0]
    assert "full prefill here" in turn["compared"]["verdict"] and not turn["can_compare"] and unpack(told)["kind"] == "idle"
    run, lent, _, tabs = calls.details(event(turn=0), talk)
    assert lent is run and {method.method for method in run.methods} == {"full", "qcfuse"} and tabs.selected == "fuse"


def test_a_comparison_that_fails_leaves_the_answer(calls):
    talk = talk_of(entry_of("Will it fail?"))
    values = list(calls.compared(talk, 0, Running()))[-1]
    assert skipped(values[0]) and skipped(values[1]) and "chunk store is full" in unpack(values[2])["message"]


def test_details_of_a_run_that_is_gone_are_a_sentence(calls):
    with pytest.raises(gr.Error, match="not kept any more"):
        calls.details(event(turn=0), talk_of(entry_of("One?", "failed")))


def test_an_answer_that_broke_off_can_be_asked_again(calls):
    talk, ask, running, *_ = asked(calls, "Who was the founder of the railway?")
    talk, *_ = calls.ended_early(talk, ask, running)
    assert talk.entries[0].outcome == "failed" and "press Retry" in talk.entries[0].message and not running.is_going_on
    assert all(skipped(value) for value in calls.ended_early(talk, None, running))


def test_a_page_without_a_session_has_no_documents(calls):
    told = calls.begin(SimpleNamespace(session_hash=None), None, None, "Who?", *SETTINGS)[5]
    assert "reload it" in unpack(told)["message"]


def test_models_load_or_stay(calls):
    *_, (told, line) = calls.load_model("Qwen/Qwen3-0.6B")
    assert unpack(told)["kind"] == "done" and "SmolLM2" in line
    *_, (told, _) = calls.load_model("nobody/nothing")
    assert "the current one stays" in unpack(told)["message"]
