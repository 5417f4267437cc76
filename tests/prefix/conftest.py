"""Tiny models behind prefix caches."""

import pytest


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def world(request):
    return made(request.param)


@pytest.fixture(scope="module")
def llama():
    return made("llama")


def made(family):
    """Returns a world. Most tests of this folder need none, and no torch, which takes long to import."""
    from serve_worlds import make_world

    return make_world(family)
