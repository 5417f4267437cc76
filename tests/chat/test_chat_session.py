"""Conversations through the session: events, stopping, queueing, models and failures, on a tiny model."""

import threading

import pytest
from chat_worlds import TALK, ask
from worlds import lighthouse, tiny_runtime

import engine.runtime
from engine.chat.types import ChatStatus, ChatToken, ChatTurn
from engine.errors import BadRequest, ModelUnavailable, UnknownName
from engine.session import Session
from engine.settings import MIB, Settings


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A session whose models are tiny."""
    monkeypatch.setattr(
        engine.runtime, "load_runtime", lambda name, settings, store=None: tiny_runtime(tmp_path, "qwen3" if name == "qwen3" else "llama")
    )
    session = Session(Settings(cache_dir=tmp_path))
    yield session
    settled(session)


def turn_of(session, request):
    return list(session.chat(request))[-1]


def settled(session):
    """Waits until everything that was asked of the engine is done."""
    with session._turns.turn(lambda ahead: None, lambda: False):
        pass


def test_a_stream_tells_the_answer_piece_by_piece_and_ends_with_the_turn(session):
    *events, turn = session.chat(ask(max_new_tokens=12))
    assert isinstance(turn, ChatTurn) and isinstance(events[0], ChatStatus)
    tokens = [event.text for event in events if isinstance(event, ChatToken)]
    assert "".join(tokens) == turn.answer and len(tokens) > 1
    assert turn.provenance.mode == "live" and turn.run.provenance == turn.provenance


def test_the_answer_is_told_while_it_is_written(session):
    """The second piece is asked for before the third is computed: nothing is held back until the end."""
    seen = []
    for event in session.chat(ask(max_new_tokens=400)):
        seen.append(event)
        if sum(isinstance(e, ChatToken) for e in seen) == 2:
            break
    assert not any(isinstance(event, ChatTurn) for event in seen)


def test_a_turn_is_settled_before_the_next_one_runs(session):
    request = ask(turns=TALK[:1])
    turn = turn_of(session, request)
    settled(session)
    stats = session.prefix_stats()
    later = turn_of(session, ask(turns=(TALK[0], (request.question, turn.answer))))
    length = later.num_prefix_hits + later.num_prefix_computed
    assert later.num_prefix_hits == length > 160
    assert stats.num_requests == 1 and session.prefix_stats().num_hit_tokens == later.num_prefix_hits


def test_closing_the_stream_stops_the_turn_and_frees_the_engine(session):
    stream = session.chat(ask(max_new_tokens=512))
    next(stream)
    stream.close()
    assert turn_of(session, ask(max_new_tokens=2)).answer is not None
    settled(session)
    session._chats._engine.prefixes.server.check_integrity()


def test_a_second_visitor_waits_and_knows_it(session):
    inside, go, seen = threading.Event(), threading.Event(), []

    def hold(status):
        inside.set()
        go.wait(10)

    first = threading.Thread(target=session.run, args=(lighthouse(max_new_tokens=2), ("full",), hold))
    first.start()
    assert inside.wait(10)
    second = threading.Thread(target=lambda: seen.extend(_letting_go(session.chat(ask(max_new_tokens=2)), go)))
    second.start()
    first.join(timeout=30)
    second.join(timeout=30)
    assert [event.queue_position for event in seen if isinstance(event, ChatStatus) and event.queue_position] == [1]
    assert isinstance(seen[-1], ChatTurn)


def _letting_go(events, go):
    for event in events:
        if isinstance(event, ChatStatus) and event.queue_position:
            go.set()
        yield event


def test_another_model_drops_the_prefix_cache(session):
    assert session.prefix_stats() is None
    turn_of(session, ask())
    assert session.prefix_stats().num_free < session.prefix_stats().capacity_blocks
    session.select_model("qwen3")
    assert session.prefix_stats() is None
    turn = turn_of(session, ask())
    assert turn.num_prefix_hits == 0 and turn.provenance.model == "tiny-qwen3"


def test_a_failure_of_the_engine_reaches_the_asker_and_the_next_turn_works(session, monkeypatch):
    turn_of(session, ask(turns=()))
    settled(session)

    def fail(*_):
        raise RuntimeError("the device is gone")

    with monkeypatch.context() as patch:
        patch.setattr(session._chats._engine.prefixes.server.pool, "store", fail)
        with pytest.raises(RuntimeError, match="gone"):
            turn_of(session, ask())
    assert turn_of(session, ask()).answer is not None
    settled(session)
    session._chats._engine.prefixes.server.check_integrity()


@pytest.mark.parametrize(("changed", "error"), [({"method": "nonsense"}, UnknownName), ({"policy": "min"}, BadRequest)])
def test_a_bad_turn_is_one_sentence_and_the_next_one_works(session, changed, error):
    with pytest.raises(error):
        turn_of(session, ask(**changed))
    assert turn_of(session, ask(max_new_tokens=2)).run is not None


def test_turns_and_errors_are_told_to_who_counts(session):
    told = []
    session.outcomes.listen(told.append)
    turn = turn_of(session, ask(max_new_tokens=2))
    with pytest.raises(UnknownName):
        turn_of(session, ask(method="nonsense"))
    assert told[0] is turn and isinstance(told[1], UnknownName)


def test_the_pools_size_is_a_setting():
    assert Settings.from_env({"FUSESCOPE_PREFIX_MIB": "8"}).prefix_bytes == 8 * MIB
    with pytest.raises(BadRequest, match="FUSESCOPE_PREFIX_MIB"):
        Settings.from_env({"FUSESCOPE_PREFIX_MIB": "0"})


def test_a_model_that_cannot_be_loaded_is_one_sentence(session, monkeypatch):
    def missing(*_):
        raise ModelUnavailable("There is no model 'missing'; give a hub id or a local path.")

    with monkeypatch.context() as patch:
        patch.setattr(engine.runtime, "load_runtime", missing)
        with pytest.raises(ModelUnavailable):
            turn_of(session, ask())
    assert turn_of(session, ask(max_new_tokens=2)).run is not None
