"""From the inputs of the Chat tab to a request: bad ones are sentences, follow-ups find their chunks."""

from dataclasses import replace

import pytest
from chat_fakes import FakeKv, fake_turn
from chat_talks import entry_of, talk_of

from engine.errors import BadRequest
from viz.panels.chat_form import ChatForm, ask_of
from viz.panels.chat_shelf import Shelf
from viz.panels.chat_talk import Entry, Talk
from viz.panels.chat_view import live_data, thread_data

FORM = ChatForm("Who was the founder of the railway?", "alpine-railway", "qcfuse", 0.3, 2, 64, 0.0, 0, "")


@pytest.fixture(scope="module")
def library():
    return FakeKv(None).library


def ask(found_in, talk=None, **changes):
    return ask_of(replace(FORM, **changes), talk or Talk(), found_in, "page-me", ("full", "qcfuse"), ("lru", "saecache"))


def test_a_question_brings_the_chunks_that_fit_best_first(library):
    found = ask(library)
    relevance = [one.chunk.relevance for one in found.found]
    assert len(found.found) == 2 and relevance == sorted(relevance, reverse=True) and found.notices == ()
    assert any("Ottilie Brandmeier" in chunk.text for chunk in found.request.chunks)
    assert found.request.policy is None and found.request.messages[-1].text == FORM.question


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"question": "  "}, "question is empty"),
        ({"question": None}, "question is empty"),
        ({"question": "x" * 4001}, "4,001 characters"),
        ({"method": "magic"}, "Unknown cache mode 'magic'"),
        ({"method": ["qcfuse"]}, "Unknown cache mode"),
        ({"ratio": None}, "recompute ratio is empty"),
        ({"ratio": 1.5}, "ratio is 1.5"),
        ({"num_chunks": 2.5}, "whole number"),
        ({"num_chunks": 99}, "from 0 to 12"),
        ({"max_new_tokens": 0}, "answer length is 0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"policy": "min"}, "Unknown policy 'min'"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_bad_input_is_one_sentence(library, changes, said):
    with pytest.raises(BadRequest, match=said) as caught:
        ask(library, **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_chunks": 0}, "No chunk was asked for"),
        ({"library": "My documents"}, "library is empty"),
        ({"library": None}, "library is empty"),
    ],
    ids=("no chunks", "empty library", "no library"),
)
def test_without_chunks_the_answer_is_the_models_own_and_says_so(library, changes, said):
    found = ask(library, **changes)
    assert found.request.chunks == () and said in found.notices[0]


def test_a_question_without_a_word_of_the_library_is_answered_without_it(library):
    found = ask(library, question="Zzyzx qwrtp?")
    assert found.request.chunks == () and "shares a word" in found.notices[0]


def test_a_follow_up_is_searched_for_with_the_question_before_it(library):
    talk = talk_of(entry_of("Who was the founder of the railway?"))
    found = ask(library, talk, question="Warum?")
    assert found.request.chunks and "the question before it" in found.notices[0]
    assert [message.role for message in found.request.messages] == ["user", "assistant", "user"]


@pytest.fixture(scope="module")
def notes(library):
    """Two documents of a visitor's that hold the same word."""
    texts = {"blue.txt": "The zeppelin of Orsund is painted blue.", "red.txt": "The zeppelin of Vell is painted red."}
    return {name: library.add("page-notes", "Notes", name, text.encode()).document_id for name, text in texts.items()}


def ask_notes(library, left_out, question="What colour is the zeppelin?"):
    form = replace(FORM, library="Notes", question=question, shelf=Shelf("Notes", left_out=frozenset(left_out)))
    return ask_of(form, Talk(), library, "page-notes", ("full", "qcfuse"), ("lru", "saecache"))


def test_only_ticked_documents_are_searched_and_the_answer_says_which(library, notes):
    found = ask_notes(library, {notes["red.txt"]})
    assert {one.info.document for one in found.found} == {"blue.txt"} and found.scope.words == "1 of 2 documents"
    told = thread_data(talk_of(Entry(found, "done", "Blue.", turn=fake_turn(found.request))))["turns"][0]
    assert told["sources_title"] == "1 chunk retrieved from 1 of 2 documents, most relevant first"
    assert told["searched"].startswith("Searched: blue.txt (")
    assert live_data(found)["sources"].startswith("Retrieved from 1 of 2 documents: ")
    everywhere = ask_notes(library, set())
    assert {one.info.document for one in everywhere.found} == set(notes) and not everywhere.scope.is_part
    assert thread_data(talk_of(Entry(everywhere, "done", "Blue.", turn=fake_turn(everywhere.request))))["turns"][0]["searched"] == ""


def test_nothing_ticked_or_nothing_found_there_is_a_sentence(library, notes):
    none = ask_notes(library, set(notes.values()))
    assert none.request.chunks == () and none.scope is None and "None of the library's documents is ticked" in none.notices[0]
    missed = ask_notes(library, {notes["red.txt"]}, "Where is Vell?")
    assert missed.request.chunks == () and "ticked (1 of 2 documents) shares a word" in missed.notices[0]
    # An id of a document that is gone leaves nothing out.
    assert len(ask_notes(library, {"gone"}).found) == 2


def test_nobody_searches_in_what_others_uploaded(library):
    library.add("page-other", "Private", "notes.txt", b"The zeppelin of Orsund is painted blue. It flies on Sundays.")
    found = ask(library, library="Private", question="What colour is the zeppelin?")
    assert found.request.chunks == () and "library is empty" in found.notices[0]
