"""The third family: biases in the projections, no norms of queries and keys. The same laws as for the other two, in pages of 16 tokens."""

import pytest
from fusion_worlds import ORDERS, assert_same_logits, lighthouse


@pytest.fixture(scope="module")
def world(running):
    """Qwen2, on the small server, whose start is the longest part of a test: the cache's pages come and go meanwhile."""
    return running.small_cache()


@pytest.mark.parametrize("order", ORDERS, ids=["0123", "2031", "3210"])
def test_full_ratio_gives_the_tokens_of_full_prefill(world, order):
    request = lighthouse(order, ratio=1.0)
    full, fused = world.ask(request, "full", 8), world.ask(request, "qcfuse", 8)
    assert fused.info["fused"] and fused.ids == full.ids


def test_rows_and_logits_equal_the_built_in_engine(world):
    request = lighthouse(ratio=0.2)
    fused, own = world.ask(request), world.built_in(request)
    assert fused.info["rows"] == own.rows.tolist() and len(own.rows) < world.prompt(request).num_tokens
    assert_same_logits(fused.top, own.log_probs)
