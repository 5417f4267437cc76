"""Work in a thread of its own: what it puts comes in order, and stopping never waits for it."""

import threading
import time

import pytest

from engine.errors import BadRequest
from viz.panels.chat_work import Running, items_of

LONG_S = 30.0


def test_items_come_in_order_and_the_end_is_noted():
    running = Running()
    assert list(items_of(lambda put, is_over: [put(i) for i in range(200)], running)) == list(range(200))
    assert not running.is_going_on and not running.is_stopped


def test_an_error_comes_behind_what_was_put_before_it():
    def work(put, is_over):
        put("first")
        raise BadRequest("The value is wrong; correct it.")

    items, running = items_of(work, Running()), Running()
    assert next(items) == "first"
    with pytest.raises(BadRequest, match="The value is wrong"):
        next(items)
    assert running.is_going_on


def test_stopping_ends_the_items_though_the_work_is_silent():
    running, begun, release = Running(), threading.Event(), threading.Event()

    def work(put, is_over):
        begun.set()
        release.wait(LONG_S)

    items = items_of(work, running)
    threading.Thread(target=lambda: (begun.wait(LONG_S), running.stop())).start()
    assert [item for item in items if item is not None] == []
    assert not release.is_set() and not running.is_going_on
    release.set()


def test_closing_the_items_tells_the_work_to_end():
    running, ended = Running(), threading.Event()

    def work(put, is_over):
        put("first")
        while not is_over():
            time.sleep(0.01)
        ended.set()

    items = items_of(work, running)
    assert next(items) == "first"
    items.close()
    assert ended.wait(LONG_S) and running.is_stopped


def test_silence_is_told_so_that_a_page_that_has_gone_is_noticed(monkeypatch):
    monkeypatch.setattr("viz.panels.chat_work.SILENCE_S", 0.1)
    release = threading.Event()
    items = items_of(lambda put, is_over: release.wait(LONG_S), Running())
    assert next(items) is None
    release.set()
    assert all(item is None for item in items)


def test_dropped_work_is_stopped_as_well():
    running = Running()
    running.drop()
    assert running.is_stopped and running.is_dropped and not running.is_going_on
