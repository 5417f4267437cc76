"""The named endpoints: what they ask of the session, and the sentences they end in."""

import gradio as gr
import pytest
from fakes import FakeRunFiles, FakeSession
from serving_world import turn_of

from engine.chat.types import ChatStatus
from viz.panels.api import endpoints
from viz.panels.page import build, engine_events


class Talking(FakeSession):
    """A fake session that answers chats and keeps what was asked."""

    asked = None

    def chat(self, request):
        """Notes the request and answers."""
        self.asked = request
        yield ChatStatus("Computing", 0.5)
        yield turn_of("In Vell.")


@pytest.fixture
def session():
    return Talking()


@pytest.fixture
def calls(session):
    """The endpoints as functions that return the last thing they yield, their result."""
    return {endpoint.name: lambda *args, _call=endpoint.call, **more: list(_call(*args, **more))[-1] for endpoint in endpoints(session)}


def test_three_are_listed_and_an_older_name_still_answers(session):
    assert {endpoint.name: endpoint.is_listed for endpoint in endpoints(session)} == {
        "answer": True, "compare": True, "replay": True, "run": False,
    }  # fmt: skip


def test_passages_are_the_paragraphs_of_a_text(session, calls):
    found = calls["answer"]("Where?", "The lamp was lit.\n\n \nAda was born\nin Vell.\n\n", method="full", ratio=0.5)
    assert [chunk.text for chunk in session.asked.chunks] == ["The lamp was lit.", "Ada was born\nin Vell."]
    assert (session.asked.question, session.asked.method, session.asked.ratio) == ("Where?", "full", 0.5)
    assert found["answer"] == "In Vell." and found["mode"] == "live" and found["num_prompt_tokens"] == 10


def test_a_scenario_stands_in_for_passages(session, calls):
    calls["answer"]("Where?", scenario="harbour")
    assert len(session.asked.chunks) == len(session.scenario("harbour").chunks())


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("answer", ("Where?",), "nothing to answer from"),
        ("answer", (" ", "A text."), "no text"),
        ("answer", ("Where?", "", "nowhere"), "nowhere"),
        ("answer", ("Where?", "A text.", "", "qcfuse", 3.0), "ratio is 3"),
        ("compare", ("harbour", " "), "question is empty"),
        ("replay", ("../../etc/passwd",), "is not known"),
        ("replay", ("balanced", "nonsense"), "nonsense"),
        ("replay", ("balanced", "lru", "0"), "at least one block"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistakes_are_sentences(calls, name, arguments, words):
    with pytest.raises(gr.Error, match=words):
        calls[name](*arguments)


def test_a_replay_is_between_lru_and_the_limit_and_the_same_for_a_seed(calls):
    first, again = (calls["replay"]("balanced", "saecache", "2 %", seed=1) for _ in range(2))
    assert first == again and list(first["policies"]) == ["lru", "saecache", "min"] and first["mode"] == "simulated"
    rates = first["policies"]
    assert rates["lru"]["hit_blocks"] <= rates["min"]["hit_blocks"] and rates["saecache"]["hit_blocks"] <= rates["min"]["hit_blocks"]
    for found in rates.values():
        assert sum(found["evicted_by_queue"].values()) == found["num_evicted"]


def test_the_events_that_count_against_a_quota_are_those_that_use_the_engine(session):
    page = build(session, FakeRunFiles())
    costly = engine_events(page)
    names = {page.fns[number].api_name for number in costly}
    assert {"answer", "compare", "replay", "run"} <= names and 0 < len(costly) < len(page.fns) / 2
