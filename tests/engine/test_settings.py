"""Settings come from the environment once, and a bad one names its variable."""

from pathlib import Path

import pytest

from engine.errors import BadRequest
from engine.settings import GIB, Settings


def test_defaults_and_overrides():
    assert Settings.from_env({}) == Settings(cache_dir=Path("~/.cache/fusescope").expanduser())
    made = Settings.from_env({"FUSESCOPE_MODEL": "a/b", "PORT": "8000", "HOST": "0.0.0.0", "FUSESCOPE_CHUNK_GIB": "0.5"})
    assert (made.model, made.port, made.host, made.chunk_capacity_bytes) == ("a/b", 8000, "0.0.0.0", GIB // 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "http"),
        ("PORT", "70000"),
        ("FUSESCOPE_DEVICE", "tpu"),
        ("FUSESCOPE_THREADS", "-1"),
        ("PORT", "nan"),
        ("FUSESCOPE_PAGE_CACHE", "no"),
        ("FUSESCOPE_PRODUCTS", "mkl"),
    ],
)
def test_a_bad_value_names_its_variable(name, value):
    with pytest.raises(BadRequest, match=name):
        Settings.from_env({name: value})
