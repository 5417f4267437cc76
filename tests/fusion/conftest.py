import pytest
from laws import law_world


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def world(request, tmp_path_factory):
    """A tiny model with its runtime and its transformers twin."""
    return law_world(tmp_path_factory.mktemp("cache"), request.param)
