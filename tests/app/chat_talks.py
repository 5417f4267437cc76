"""Conversations for the tests of the Chat tab."""

from chat_fakes import fake_turn
from fake_runs import harbour_scenario

from engine.chat.types import ChatMessage, ChatRequest
from viz.panels.chat_talk import Ask, Entry, Talk


def entry_of(question, outcome="done", answer=None):
    request = ChatRequest((ChatMessage("user", question),), chunks=harbour_scenario().chunks()[:2])
    turn = fake_turn(request) if outcome == "done" else None
    return Entry(Ask(request), outcome, turn.answer if turn and answer is None else answer or "", turn=turn)


def talk_of(*entries):
    talk = Talk()
    for entry in entries:
        talk = talk.with_entry(entry)
    return talk
