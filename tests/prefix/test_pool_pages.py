"""The paged pool: what is written to pages comes back bit for bit, pages are never lost or shared, memory is fixed."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadRequest
from engine.model.cache import RequestCache
from engine.model.tiny import tiny_model
from engine.prefix.pages import PageTable
from engine.prefix.pool import PagePool, page_bytes, pages_within

CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def spec(request):
    return tiny_model(request.param).spec


def filled_cache(spec, capacity, seed):
    cache, generator = RequestCache(spec, capacity, torch.float32, CPU), torch.Generator().manual_seed(seed)
    cache.keys.copy_(torch.randn(cache.keys.shape, generator=generator))
    cache.values.copy_(torch.randn(cache.values.shape, generator=generator))
    return cache


@pytest.mark.parametrize("block_tokens", [1, 16])
def test_blocks_come_back_bit_for_bit_from_scattered_pages(spec, block_tokens):
    pool = PagePool(spec, 11, block_tokens, torch.float32, CPU)
    source = filled_cache(spec, 9 * block_tokens + 3, 0)
    pages = np.array([7, 2, 10, 0, 5])
    pool.store(pages, 2, source)
    back = RequestCache(spec, 20 * block_tokens, torch.float32, CPU)
    back.keys.fill_(float("nan"))
    back.values.fill_(float("nan"))
    pool.load(pages[[3, 0, 4]], back)
    for name in ("keys", "values"):
        was, now = getattr(source, name), getattr(back, name)
        for place, block in enumerate([5, 2, 6]):
            span = slice(place * block_tokens, (place + 1) * block_tokens)
            assert torch.equal(now[:, span], was[:, block * block_tokens : (block + 1) * block_tokens]), name
        assert now[:, 3 * block_tokens :].isnan().all(), f"{name} behind the loaded blocks were touched"


def test_storing_touches_no_other_page(spec):
    pool = PagePool(spec, 6, 16, torch.float32, CPU)
    first, second = filled_cache(spec, 64, 1), filled_cache(spec, 64, 2)
    pool.store(np.array([4, 1]), 0, first)
    pool.store(np.array([3, 0]), 1, second)
    back = RequestCache(spec, 64, torch.float32, CPU)
    pool.load(np.array([4, 1]), back)
    assert torch.equal(back.keys[:, :32], first.keys[:, :32]) and torch.equal(back.values[:, :32], first.values[:, :32])


def test_loading_no_page_leaves_the_cache_alone(spec):
    cache = filled_cache(spec, 32, 3)
    before = cache.keys.clone()
    pool = PagePool(spec, 2, 16, torch.float32, CPU)
    pool.load(np.zeros(0, np.int32), cache)
    pool.store(np.zeros(0, np.int32), 0, cache)
    assert torch.equal(cache.keys, before)


def test_the_pool_takes_the_bytes_of_its_pages(spec):
    pool = PagePool(spec, 13, 16, torch.float32, CPU)
    by_hand = 13 * 16 * spec.num_layers * 2 * spec.num_kv_heads * spec.head_dim * 4
    assert pool.size_bytes == by_hand == 13 * page_bytes(spec, 16, torch.float32) == 13 * pool.page_bytes
    assert pages_within(by_hand, spec, 16, torch.float32) == 13
    assert pages_within(by_hand - 1, spec, 16, torch.float32) == 12


@pytest.mark.parametrize("size", [0, -1, 100, float("nan"), float("inf")])
def test_a_size_below_one_block_is_refused_in_one_sentence(spec, size):
    with pytest.raises(BadRequest, match=r"one block of 16 tokens takes .*\.$"):
        pages_within(size, spec, 16, torch.float32)


@pytest.mark.parametrize(("num_pages", "block_tokens"), [(0, 16), (-3, 16), (4, 0)])
def test_an_empty_pool_is_refused(spec, num_pages, block_tokens):
    with pytest.raises(BadRequest, match="at least 1"):
        PagePool(spec, num_pages, block_tokens, torch.float32, CPU)


def test_a_pool_larger_than_the_memory_is_refused(spec):
    with pytest.raises(BadRequest, match="does not fit"):
        PagePool(spec, 10**13, 16, torch.float32, CPU)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=60))
@settings(max_examples=100, deadline=None)
def test_pages_are_neither_lost_nor_shared(steps):
    table, cached = PageTable(5, 8), np.zeros(8, bool)
    for comes, block in steps:
        blocks = np.array([block])
        if comes and not cached[block] and table.num_free:
            table.bind(blocks, table.offer(1))
            cached[block] = True
        elif not comes:
            # Releasing a block that has no page is harmless.
            table.release(blocks)
            cached[block] = False
        table.check_integrity(cached)
        assert table.num_free == 5 - cached.sum()


def test_an_offer_that_is_not_taken_up_leaves_nothing_behind():
    table = PageTable(4, 9)
    table.offer(3)
    assert table.num_free == 4
    pages = table.offer(2)
    table.bind(np.array([6, 3]), pages)
    assert table.pages(np.array([3, 6, 1])).tolist() == [pages[1], pages[0], -1]
    assert table.num_filled(np.array([6, 3, 1, 6])) == 2 and table.num_filled(np.array([1, 6])) == 0
    with pytest.raises(AssertionError):
        table.offer(3)
    with pytest.raises(AssertionError):
        table.bind(np.array([6]), table.offer(1))
