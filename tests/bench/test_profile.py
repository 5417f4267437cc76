"""The profile parts a prefill's operations by what they are for."""

import pytest

from engine.bench.profile import PARTS, Event, parts_of

WEIGHTS = frozenset({(192, 64), (64, 64)})


def test_products_with_a_weight_are_projections_and_others_attention():
    events = [
        Event("mkldnn::_linear_pointwise", ((10, 64), (192, 64), ()), 3, 6.0),
        Event("aten::mm", ((10, 64), (64, 192)), 1, 1.0),
        Event("mkldnn::_linear_pointwise", ((30, 16), (50, 16), ()), 2, 2.0),
        Event("aten::_softmax", ((30, 50), (), ()), 2, 1.0),
        Event("aten::copy_", ((16, 50), (16, 50)), 2, 0.5),
        Event("aten::mul_", ((10, 64), (10, 64)), 2, 0.5),
        Event("aten::topk", ((50,),), 1, 1.0),
    ]
    parts = {part.part: part for part in parts_of(events, WEIGHTS)}
    assert tuple(parts) == PARTS
    assert parts["projections"].calls == 4
    assert parts["projections"].gflop == pytest.approx(4 * 2e-9 * 10 * 64 * 192)
    assert parts["attention products"].gflop == pytest.approx(2 * 2e-9 * 30 * 16 * 50)
    assert [parts[name].time_ms for name in PARTS] == [7.0, 2.0, 1.0, 0.5, 0.5, 1.0]
    assert sum(part.share for part in parts.values()) == pytest.approx(1.0)


def test_torchs_own_attention_counts_both_its_products():
    event = Event("aten::_scaled_dot_product_flash_attention_for_cpu", ((1, 3, 20, 16), (1, 3, 50, 16), (1, 3, 50, 16)), 5, 4.0)
    part = parts_of([event], WEIGHTS)[1]
    assert (part.calls, part.gflop) == (5, pytest.approx(5 * 2 * 2e-9 * 3 * 20 * 50 * 16))
    whole = Event("aten::_scaled_dot_product_flash_attention_for_cpu", ((1, 3, 20, 16), (1, 1, 20, 16), (1, 1, 20, 16)), 1, 4.0)
    assert parts_of([whole], WEIGHTS)[1].gflop == pytest.approx(2 * 2e-9 * 3 * (20 * 21 / 2) * 16), "no row sees a key behind it"
