"""Fixtures of the page in a browser, and of the Evict and Chat tabs without one."""

import gradio as gr
import pytest
from evict_fakes import FakeReplays
from launch import served, visiting

from viz.panels import chat_work, evict_callbacks
from viz.panels.evict_callbacks import EvictCallbacks


@pytest.fixture(scope="session")
def plain_url():
    """The page over the plain fake session, for all tests that leave nothing behind for the next visitor."""
    with served("fakes:FakeSession") as address:
        yield address


@pytest.fixture(scope="session")
def opened_on_a_phone(browser, plain_url):
    """One page on a phone, in the dark, for the tests of every tab: opening it takes longer than most of them do."""
    shown = "#layers-recall .js-plotly-plot .main-svg"
    with visiting(browser, plain_url, 390, 844, theme="dark", query="tab=layers", ready=shown) as visit:
        yield visit


@pytest.fixture
def phone(opened_on_a_phone):
    """A visit on a phone that has been to other tabs before; the test turns to its own."""
    opened_on_a_phone.page.set_viewport_size({"width": 390, "height": 844})
    yield opened_on_a_phone
    found = opened_on_a_phone.problems.copy()
    opened_on_a_phone.problems.clear()
    assert found == []


@pytest.fixture
def toasts(monkeypatch):
    """Collects what would be shown as toasts; nobody waits for a slider or for news of a worker."""
    shown = []
    monkeypatch.setattr(gr, "Warning", lambda message, **_: shown.append(message))
    monkeypatch.setattr(evict_callbacks, "DEBOUNCE_S", 0.0)
    monkeypatch.setattr(evict_callbacks, "MIN_GAP_S", 0.0)
    monkeypatch.setattr(chat_work, "POLL_S", 0.01)
    return shown


@pytest.fixture
def calls(toasts):
    return EvictCallbacks(FakeReplays())
