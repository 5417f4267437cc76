"""Parameters of methods that would fail within a run are refused when the method is made."""

import pytest

from engine.errors import BadRequest
from engine.fusion.compose import create_method


@pytest.mark.parametrize("name", ["infoflow", "qcfuse_cv"])
@pytest.mark.parametrize("num", [0, -1])
def test_a_method_scores_at_least_one_layer(name, num):
    with pytest.raises(BadRequest, match=f"score {num} layers; it must be at least one"):
        create_method(name, num_layers=num)


@pytest.mark.parametrize("seed", [10**20, -(10**20)])
def test_a_seed_fits_its_generator(seed):
    with pytest.raises(BadRequest, match=f"is {seed}; it must be a whole number"):
        create_method("random", seed=seed)
    assert create_method("random", seed=-1).seed == -1
