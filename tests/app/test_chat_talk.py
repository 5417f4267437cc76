"""What a conversation keeps and what the next question is given, without a browser."""

import pytest
from chat_fakes import fake_turn
from chat_talks import entry_of, talk_of

from engine.chat.types import ChatRequest
from engine.errors import BadRequest
from viz.panels.chat_talk import NUM_RUNS_KEPT, Talk


def questions(talk):
    return [message.text for message in talk.messages("Now?") if message.role == "user"]


def test_only_whole_answers_are_given_to_the_engine():
    talk = talk_of(
        entry_of("One?"), entry_of("Two?", "stopped"), entry_of("Three?", "failed"), entry_of("Four?", answer=" "), entry_of("Five?")
    )
    assert questions(talk) == ["One?", "Five?", "Now?"]
    assert ChatRequest(talk.messages("Now?")).question == "Now?"


def test_an_edited_question_drops_itself_and_what_follows_once_it_is_sent():
    talk = talk_of(entry_of("One?"), entry_of("Two?"), entry_of("Three?")).edited(1)
    assert questions(talk) == ["One?", "Now?"] and len(talk.entries) == 3
    sent = talk.sent()
    assert [entry.question for entry in sent.entries] == ["One?"] and sent.editing is None and sent.name == talk.name


def test_conversations_have_names_of_their_own():
    assert len({Talk().name for _ in range(50)}) == 50


@pytest.mark.parametrize("index", [-1, 2, None, True, "0", 1.0], ids=repr)
def test_a_turn_that_is_not_there_is_a_sentence(index):
    with pytest.raises(BadRequest, match="not part of the conversation"):
        talk_of(entry_of("One?"), entry_of("Two?")).entry(index)


def test_the_oldest_runs_go_and_their_numbers_stay():
    talk = talk_of(*(entry_of(f"Question {i}?") for i in range(NUM_RUNS_KEPT + 3)))
    assert [entry.turn.run is None for entry in talk.entries] == [True] * 3 + [False] * NUM_RUNS_KEPT
    first = talk.entries[0]
    assert first.turn.tokens == () and first.turn.num_recomputed > 0 and first.turn.num_recomputed == talk.entries[-1].turn.num_recomputed


def test_a_comparison_replaces_the_run_that_is_looked_at():
    talk = talk_of(entry_of("One?"), entry_of("Two?"))
    other = fake_turn(talk.entries[0].ask.request)
    compared = talk.with_compared(0, other)
    assert compared.entries[0].details is other and compared.entries[1].details is talk.entries[1].turn
