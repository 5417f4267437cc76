"""Tiny models behind prefix caches."""

import pytest
from serve_worlds import make_world


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def world(request):
    return make_world(request.param)


@pytest.fixture(scope="module")
def llama():
    return make_world("llama")
