"""The gradient oracle follows the engine and finite differences; the fit finds the heads that made a sample; the command files both."""

import json

import msgspec
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from worlds import lighthouse, tiny_runtime

from engine.fusion.full import FullPrefill
from engine.fusion.reuse import DirectReuse
from engine.model import fit_heads
from engine.model.calibration import calibration_path
from engine.model.fit_heads import mixed_kv
from engine.model.head_weights import SHIPPED_DIR, HeadWeights, find_head_weights
from engine.model.kv_gradient import row_logits, token_gains
from engine.model.tiny import TINY_FAMILIES
from engine.tuning.head_fit import FOLDS, HeadSample, caught, ever_fewer, fit_weights, held_out, loss, select_layers


@pytest.fixture(scope="module", params=TINY_FAMILIES)
def world(request, tmp_path_factory):
    """Returns runtime, prompt, stored chunks, the mixed context and the ids of question and answer."""
    runtime = tiny_runtime(tmp_path_factory.mktemp("heads"), request.param)
    prepared = runtime.prepare(lighthouse())
    ids = torch.cat([torch.from_numpy(prepared.prompt.ids[prepared.prompt.question_start :]), torch.tensor([86, 101, 108, 108])])
    return runtime, prepared.prompt, prepared.placed["system"], mixed_kv(runtime, prepared), ids


@pytest.mark.parametrize(("share", "method"), [(0.0, DirectReuse()), (1.0, FullPrefill())], ids=["stored", "true"])
def test_all_stored_is_direct_reuse_and_all_true_is_full_prefill(world, share, method):
    runtime, prompt, placed, mixed, ids = world
    expected = runtime.pipeline.prefill(method, prompt, placed, runtime.pool.get("method", prompt.num_tokens + 1)).logits
    found = row_logits(runtime.decoder, mixed, ids[:-4], torch.full((prompt.num_doc_tokens,), share), 1)[0]
    torch.testing.assert_close(found, expected.clone(), atol=5e-5, rtol=0)


def test_gains_are_the_slopes_of_kl(world):
    runtime, prompt, _, mixed, ids = world
    gains = token_gains(runtime.decoder, mixed, ids, 4)
    full = torch.log_softmax(row_logits(runtime.decoder, mixed, ids, torch.ones(prompt.num_doc_tokens), 5), dim=-1).double()

    def divergence(share: torch.Tensor) -> float:
        other = torch.log_softmax(row_logits(runtime.decoder, mixed, ids, share, 5), dim=-1).double()
        return float(F.kl_div(other, full, log_target=True, reduction="none").sum(-1).mean())

    token, width = int(gains.abs().argmax()), 0.02
    slopes = 0.0
    for step in (0.0, 0.5):
        low, high = (torch.full((prompt.num_doc_tokens,), step) for _ in range(2))
        low[token], high[token] = step - width, step + width
        slopes += (divergence(high) - divergence(low)) / (2 * width)
    assert float(gains[token]) == pytest.approx(-slopes, rel=0.02)


def test_tokens_that_are_exact_as_stored_gain_nothing(world):
    runtime, _, placed, mixed, ids = world
    gains = token_gains(runtime.decoder, mixed, ids, 4)
    first = placed[1].stop - placed[1].start
    assert placed[1].is_exact and float(gains[:first].abs().max()) < 1e-4 * float(gains.abs().max())


def made(num: int, layers: int = 4, heads: int = 3, tokens: int = 60) -> list[HeadSample]:
    """Returns samples whose gains are what head 1 of layer 2 and head 0 of layer 3 say; all others are noise."""
    rng = np.random.default_rng(0)
    samples = []
    for _ in range(num):
        scores = torch.from_numpy(rng.exponential(size=(layers, heads, tokens)) ** 2).float()
        samples.append(HeadSample(scores, 2 * scores[2, 1] + scores[3, 0], 1 / num))
    return samples


def test_the_fit_finds_the_heads_that_tell():
    weights = fit_weights(made(6))
    assert weights.max() == 1 and weights.min() >= 0
    order = [divmod(int(i), weights.shape[1]) for i in weights.flatten().argsort(descending=True)]
    assert order[:2] == [(2, 1), (3, 0)]


def test_the_loss_is_zero_where_scores_are_the_gains_and_positive_elsewhere():
    (sample,) = made(1)
    right = torch.zeros(4, 3)
    right[2, 1], right[3, 0] = 2, 1
    assert float(loss(sample, right)) == pytest.approx(0, abs=1e-5) and float(loss(sample, torch.ones(4, 3))) > 0.01
    assert caught(sample.gains, sample.gains) == pytest.approx(1) and caught(sample.gains, -sample.gains) < 0.1


def test_layers_that_do_not_help_are_dropped_and_quality_is_kept():
    samples = made(8)
    chosen = select_layers(samples)
    assert chosen.kept.layers == (2, 3) and chosen.weights.shape == (2, 3)
    assert chosen.kept.losses.mean() <= chosen.every.losses.mean() + 0.01
    assert [len(layers) for layers in ever_fewer(samples)] == [4, 3, 2, 1]


def test_every_sample_is_judged_by_weights_fitted_without_it():
    samples = made(FOLDS + 1)
    found = held_out(samples, range(4))
    assert (found.losses > 0).all() and len(found.losses) == len(samples)
    outside = fit_weights([sample for i, sample in enumerate(samples) if i % FOLDS != 1])
    assert found.losses[1] == pytest.approx(float(loss(samples[1], outside)))


def test_the_command_files_weights_that_are_used_from_then_on(tmp_path, monkeypatch, capsys):
    runtime = tiny_runtime(tmp_path)
    calibration_path(tmp_path / "head_weights", runtime.model.spec.name).unlink()
    monkeypatch.setenv("FUSESCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(fit_heads, "load_runtime", lambda name, settings: runtime)
    rows = []
    for i in range(3):
        passages = [{"text": f"Pier {i}{j} is closed. The key is K{j}. " * 3, "is_supporting": j == 1} for j in range(3)]
        rows.append({"id": str(i), "question": f"What is the key of pier {i}1?", "answers": ["K1"], "passages": passages})
    # One chunk behind the system part is exact as stored, so this sample says nothing.
    rows.append(rows[0] | {"id": "alone", "passages": [{"text": "The key is K1.", "is_supporting": True}]})
    data = tmp_path / "a.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.setattr("engine.bench.data.passages.Packing.groups", lambda self, passages: ([one] for one in passages))
    assert fit_heads.main(["--data", str(data), "--n", "4"]) == 0
    found = find_head_weights(runtime.model.spec, tmp_path)
    assert found.num_samples == 3 and set(found.layers) <= {1, 2, 3} and "a (n=4)" in found.note
    assert max(max(row) for row in found.weights) == 1 and min(min(row) for row in found.weights) >= 0
    out = capsys.readouterr()
    last = json.loads(out.out.splitlines()[-1])
    assert last["kept"]["layers"] == list(found.layers) and last["all"]["layers"] == [1, 2, 3] and "left out alone" in out.err


def test_too_few_samples_are_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fit_heads, "load_runtime", lambda name, settings: tiny_runtime(tmp_path))
    data = tmp_path / "a.jsonl"
    passage = {"text": "The key is K1.", "is_supporting": True}
    data.write_text(json.dumps({"id": "a", "question": "What?", "answers": ["K1"], "passages": [passage]}))
    assert fit_heads.main(["--data", str(data), "--n", "1", "--out", str(tmp_path / "out")]) == 2
    assert "0 samples are left" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_the_shipped_weights_fit_the_bundled_model_and_stop_before_its_last_layers():
    found = msgspec.json.decode((SHIPPED_DIR / "SmolLM2-135M-Instruct.json").read_bytes(), type=HeadWeights)
    assert found.num_samples >= 20 and found.created and "held-out loss" in found.note
    assert all(len(row) == 9 and min(row) >= 0 for row in found.weights) and len(found.weights) == len(found.layers)
    assert list(found.layers) == sorted(set(found.layers)) and min(found.layers) >= 1 and max(found.layers) < 29
