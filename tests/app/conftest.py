"""Fixtures of the page in a browser, and of the Evict and Chat tabs without one."""

import gradio as gr
import pytest
from evict_fakes import FakeReplays
from launch import served

from viz.panels import chat_work, evict_callbacks
from viz.panels.evict_callbacks import EvictCallbacks


@pytest.fixture(scope="session")
def plain_url():
    """The page over the plain fake session, for all tests that leave nothing behind for the next visitor."""
    with served("fakes:FakeSession") as address:
        yield address


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
