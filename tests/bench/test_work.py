"""The work of a method's rows, against a count written out row by row and key by key."""

from dataclasses import replace

import numpy as np
import pytest
from fake_runs import example_request, fake_run
from worlds import tiny_runtime

from engine.bench.work import Work, work_of

WORK = Work(per_row=1000.0, per_pair=7.0)


def run_and_method(rows, layer_rows=None):
    run = fake_run(example_request(), ("full", "qcfuse"))
    counts = None if layer_rows is None else np.array(layer_rows, dtype=np.int32)
    return run, replace(run.method("qcfuse"), rows=np.array(rows, dtype=np.int32), layer_rows=counts)


def counted(rows):
    return sum(1000.0 + sum(7.0 for _ in range(row + 1)) for row in rows)


def test_the_share_counts_every_key_that_every_row_attends_to():
    run, method = run_and_method([0, 3, 4, 9])
    every = counted(range(len(run.tokens)))
    assert WORK.share(run, method) == pytest.approx(counted([0, 3, 4, 9]) / every)
    whole = [len(run.tokens)] + [4] * (run.num_layers - 1)
    expected = (every + (run.num_layers - 1) * counted([0, 3, 4, 9])) / (run.num_layers * every)
    assert WORK.share(*run_and_method([0, 3, 4, 9], whole)) == pytest.approx(expected)


def test_full_prefill_is_all_of_it_no_rows_are_none_and_late_rows_are_more():
    run, _ = run_and_method([0])
    last = len(run.tokens) - 1
    assert WORK.share(*run_and_method(range(last + 1))) == pytest.approx(1.0)
    assert WORK.share(*run_and_method([])) == 0.0
    assert WORK.share(*run_and_method([last - 1, last])) > 1.01 * WORK.share(*run_and_method([0, 1]))


def test_a_models_work_is_that_of_its_products(tmp_path):
    decoder = tiny_runtime(tmp_path).decoder
    hidden, heads, head_dim = decoder.spec.hidden_size, decoder.spec.num_heads, decoder.spec.head_dim
    inner = decoder.weights.layers[0].down.weight.shape[1]
    products = 2 * hidden * heads * head_dim + 2 * hidden * decoder.spec.num_kv_heads * head_dim + 3 * hidden * inner
    assert work_of(decoder) == Work(2.0 * products, 4.0 * heads * head_dim)
