"""What the player weighs and how fast it draws a large run: written to build/player_budget.json and printed. Only sizes are asserted."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runs import ALL_METHODS, fake_run
from player_site import file_server, visiting_player

from engine.runfile import save_run
from engine.types import Chunk, FusionRequest
from viz.player.pack import pack_run
from viz.player.static import write_site

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
MAX_SCRIPT_BYTES, MAX_PAYLOAD_BYTES = 150_000, 1_000_000
FRAMES = 90
SCRUB = """(frames) => new Promise((done) => {
  const end = 0.6, player = window.fusescope, began = performance.now();
  let frame = 0;
  const next = () => {
    if (frame === frames) { done((performance.now() - began) / frames); return; }
    player.dispatch({ type: "seek", time: (end * frame) / frames });
    frame += 1;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})"""
FIRST = """() => performance.getEntriesByName("fusescope:first-picture")[0].startTime
  - performance.getEntriesByType("navigation")[0].loadEventEnd"""


def large_run():
    chunks = tuple(Chunk(f"c{i}", f"Document {i}", ("word " * 500).strip()) for i in range(20))
    run = fake_run(FusionRequest("Which word?", chunks, repeats=3, scenario="large"), ALL_METHODS, mode="replay")
    kept = tuple(
        replace(m, kv_distance=None) if m.kv_distance is None else replace(m, kv_distance=m.kv_distance.repeat(2, axis=0)[:36])
        for m in run.methods
    )
    return replace(run, num_layers=36, methods=kept)


def test_a_large_run_fits_the_budget(browser, tmp_path):
    run, folder = large_run(), tmp_path / "site"
    assert len(run.tokens) >= 10_000 and run.num_layers == 36
    (tmp_path / "runs").mkdir()
    save_run(run, tmp_path / "runs" / "large.run.json.gz")
    write_site(folder, tmp_path / "runs")
    with file_server(folder) as url, visiting_player(browser, url, is_new=True) as visit:
        first_ms = visit.page.evaluate(FIRST)
        frame_ms = visit.page.evaluate(SCRUB, FRAMES)
        problems = visit.problems
    figures = {
        "script_bytes": (folder / "player.js").stat().st_size,
        "style_bytes": (folder / "player.css").stat().st_size,
        "payload_bytes": len(json.dumps(pack_run(run), ensure_ascii=False, separators=(",", ":")).encode()),
        "tokens": len(run.tokens),
        "layers": run.num_layers,
        "methods": len(run.methods),
        "first_picture_after_load_ms": round(first_ms, 1),
        "scrub_frame_ms": round(frame_ms, 2),
        "scrub_fps": round(1000 / frame_ms, 1),
        "viewport": "1920x1080",
        "cpus": os.cpu_count(),
    }
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "player_budget.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures))
    assert problems == []
    assert figures["script_bytes"] <= MAX_SCRIPT_BYTES
    assert figures["payload_bytes"] <= MAX_PAYLOAD_BYTES
