"""Conversations on tiny models."""

import pytest
from chat_worlds import ChatWorld


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def world(request, tmp_path_factory):
    """A tiny model with its runtime, its transformers twin and makers of engines."""
    return ChatWorld(tmp_path_factory.mktemp("cache"), request.param)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """The tiny Llama alone."""
    return ChatWorld(tmp_path_factory.mktemp("cache"), "llama")
