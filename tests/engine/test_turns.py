"""One slot, fair order, positions told, and a way out while waiting."""

import threading
import time

import pytest

from engine import turns as turns_module
from engine.errors import Cancelled, TimedOut
from engine.turns import Allowance, Turns


def test_requests_run_one_at_a_time_in_order():
    turns, order, inside = Turns(), [], []

    def work(number):
        with turns.turn(lambda ahead: None, lambda: False):
            inside.append(number)
            assert len(inside) == 1
            time.sleep(0.02)
            order.append(number)
            inside.remove(number)

    threads = []
    with turns.turn(lambda ahead: None, lambda: False):
        for number in range(5):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            time.sleep(0.02)
    for thread in threads:
        thread.join(timeout=10)
    assert order == [0, 1, 2, 3, 4]


def test_waiting_requests_know_their_place():
    turns, told, started = Turns(), [], threading.Event()

    def waiter():
        with turns.turn(lambda ahead: (told.append(ahead), started.set()), lambda: False):
            pass

    with turns.turn(lambda ahead: None, lambda: False):
        thread = threading.Thread(target=waiter)
        thread.start()
        assert started.wait(5)
    thread.join(timeout=5)
    assert told == [1]


def test_giving_up_while_waiting_frees_the_place():
    turns = Turns()
    with turns.turn(lambda ahead: None, lambda: False), pytest.raises(Cancelled), turns.turn(lambda ahead: None, lambda: True):
        pass
    with turns.turn(lambda ahead: None, lambda: False):
        pass


def test_an_error_in_the_body_frees_the_slot():
    turns = Turns()
    with pytest.raises(ValueError, match="boom"), turns.turn(lambda ahead: None, lambda: False):
        raise ValueError("boom")
    with turns.turn(lambda ahead: None, lambda: False):
        pass


def test_an_allowance_counts_what_its_turns_took_and_nothing_between_them(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(turns_module.time, "monotonic", lambda: clock[0])
    allowance = Allowance(10.0, lambda: False, "Too long; ask for less.")
    with allowance.used() as stopped:
        clock[0] += 6.0
        assert not stopped()
    clock[0] += 1000.0
    with allowance.used() as stopped:
        clock[0] += 3.0
        assert not stopped()
        clock[0] += 2.0
        with pytest.raises(TimedOut, match="Too long; ask for less"):
            stopped()


def test_an_allowance_without_a_limit_only_asks_its_owner():
    with Allowance(0.0, lambda: True, "").used() as stopped:
        assert stopped()
