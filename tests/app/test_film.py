"""What the Play tab shows: live beside recorded, the recorded run while the engine is busy or fails, two questions."""

from dataclasses import dataclass, replace

import pytest
from fakes import FakeSession

from engine.errors import BadRunFile
from viz.panels.film import film_of
from viz.panels.fuse_flip_view import FlipPair
from viz.panels.fuse_view import status
from viz.panels.players import pack

SESSION = FakeSession()


def live(question="q1", methods=("full", "qcfuse")):
    return list(SESSION.stream(SESSION.scenario("harbour").request(question), methods))[-1]


def test_nothing_is_played_for_nothing():
    assert film_of(SESSION, None, None, None) is None


def test_a_live_run_has_the_recorded_one_as_its_ghost():
    run = live()
    film = film_of(SESSION, run, pack(status("done", "Done.")), None)
    assert film.run is run and film.reason == ""
    assert film.ghost.provenance.mode == "replay" and film.ghost.scenario == run.scenario


def test_a_recorded_run_has_no_ghost():
    assert film_of(SESSION, SESSION.recorded("harbour"), None, None).ghost is None


@pytest.mark.parametrize(("kind", "word"), [("busy", "Meanwhile"), ("error", "Instead")])
def test_while_the_engine_cannot_deliver_the_recorded_run_plays_with_the_reason(kind, word):
    run, line = live(), pack(status(kind, "The model is gone."))
    film = film_of(SESSION, run, line, None)
    assert film.run.provenance.mode == "replay" and film.ghost is run
    assert film.reason == f"The model is gone. {word} the recorded run plays."
    alone = film_of(FakeSession(with_recordings=False), run, line, None)
    assert alone.run is run and alone.reason == f"The model is gone. {word} the run before it plays."


@pytest.mark.parametrize("value", [None, 7, {}, {"b64": "?"}, {"b64": "e30="}, {"b64": "W10="}, "text"], ids=str)
def test_a_status_line_that_came_back_broken_says_nothing(value):
    run = SESSION.recorded("harbour")
    assert film_of(SESSION, run, value, None).reason == ""


def test_a_recorded_run_that_cannot_be_read_is_named():
    @dataclass
    class Broken(FakeSession):
        def recorded(self, scenario):
            raise BadRunFile("The run file is cut off.")

    film = film_of(Broken(), live(), None, None)
    assert film.ghost is None and film.reason == "The run file is cut off."


@pytest.mark.parametrize("name", ["", "../runs/harbour", "uploaded"])
def test_only_known_scenarios_are_looked_up(name):
    assert film_of(SESSION, replace(live(), scenario=name), None, None).ghost is None


def test_a_second_question_is_shown_beside_the_run_it_was_compared_with():
    run, other = live(), live("q2", ("qcfuse",))
    assert film_of(SESSION, run, None, FlipPair("qcfuse", run, other)).flip is other
    assert film_of(SESSION, run, None, FlipPair("epic", run, other)).flip is None, "the run shown does not hold the method"
    assert film_of(SESSION, live("q2"), None, FlipPair("qcfuse", run, other)).flip is None, "question A is not the one shown"
