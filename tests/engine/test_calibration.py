"""Calibration tables: shipped ones load, measured ones win, broken ones are passed over, and a guess says so."""

from dataclasses import replace

import msgspec
import pytest

from engine.model.calibration import SHIPPED_DIR, Calibration, calibration_path, find_calibration
from engine.model.tiny import tiny_model


@pytest.fixture(scope="module")
def spec():
    return tiny_model().spec


@pytest.mark.parametrize("path", sorted(SHIPPED_DIR.glob("*.json")), ids=lambda path: path.stem)
def test_a_shipped_table_has_its_evidence(path):
    table = msgspec.json.decode(path.read_bytes(), type=Calibration)
    assert table.origin == "measured" and table.num_samples >= 10 and table.note and table.created
    measured = {score.layer: score for score in table.scores}
    assert all(measured[layer].kl is not None for layer in table.layers)
    assert calibration_path(SHIPPED_DIR, table.model) == path


def test_there_is_one_for_the_bundled_model(spec):
    bundled = replace(spec, name="SmolLM2-135M-Instruct", num_layers=30)
    assert find_calibration(bundled, SHIPPED_DIR / "nowhere").origin == "measured"


def test_a_measured_table_wins_and_a_broken_one_is_passed_over(spec, tmp_path):
    guess = find_calibration(spec, tmp_path)
    assert guess.origin == "guess" and guess.layers == (3,) and "engine.model.calibrate" in guess.note
    path = calibration_path(tmp_path / "calibration", spec.name)
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(Calibration(spec.name, (2, 1), "measured", "here")))
    assert find_calibration(spec, tmp_path).layers == (2, 1)
    path.write_bytes(msgspec.json.encode(Calibration(spec.name, (99,), "measured", "of another model")))
    assert find_calibration(spec, tmp_path).origin == "guess"
    path.write_bytes(b"{")
    assert find_calibration(spec, tmp_path).origin == "guess"
