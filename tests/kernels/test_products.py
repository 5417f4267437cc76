"""Which products the CPU path takes: timed, or as named."""

import pytest

from kernels.onednn import has_onednn
from kernels.products import CHOICES, VARIABLE, Products, fastest_products


@pytest.fixture
def choose(monkeypatch):
    def chosen(name):
        monkeypatch.setenv(VARIABLE, name)
        fastest_products.cache_clear()
        return fastest_products()

    yield chosen
    fastest_products.cache_clear()


def untimed(*arguments):
    raise AssertionError("nothing is to be timed")


def test_what_is_named_is_taken_untried(choose, monkeypatch):
    monkeypatch.setattr("kernels.products._ratio", untimed)
    assert choose("torch") == Products(weights=False, attention=False)
    assert choose("onednn") == Products(weights=has_onednn(), attention=has_onednn())


@pytest.mark.skipif(not has_onednn(), reason="this build of torch has no oneDNN products")
@pytest.mark.parametrize(("ratio", "faster"), [(0.5, True), (1.2, False)])
def test_by_itself_the_faster_is_taken(choose, monkeypatch, ratio, faster):
    monkeypatch.setattr("kernels.products._ratio", lambda ours, theirs: ratio)
    assert choose(CHOICES[0]) == Products(weights=faster, attention=faster)
