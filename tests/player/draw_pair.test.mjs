import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRun } from "../../assets/player/core/decode.js";
import { flipOf } from "../../assets/player/core/flip.js";
import { mapScene } from "../../assets/player/core/map_scene.js";
import { timeScene } from "../../assets/player/core/time_scene.js";
import { drawFlip } from "../../assets/player/view/draw_flip.js";
import { mapGeometry } from "../../assets/player/view/draw_map.js";
import { drawTimeline, timelineGeometry, xAt } from "../../assets/player/view/draw_timeline.js";
import { bits, packedRun } from "./helpers.mjs";

// A pen that writes down what it is told to draw.
function recorder() {
  const calls = [], note = (kind) => (...args) => { calls.push({ kind, args }); };
  const pen = { rect: note("rect"), hatch: note("hatch"), frame: note("frame"), line: note("line"), shape: note("shape"), text: note("text"), width: (text) => text.length * 7, stamp: (key, x, y, w, h, draw) => draw(pen) };
  return { pen, of: (kind) => calls.filter((call) => call.kind === kind).map((call) => call.args) };
}
const COLORS = new Proxy({ methods: {}, stages: {}, hatches: {}, flip: ["violet", "orange", "pink"] }, { get: (own, name) => own[name] ?? String(name) });
const say = (key) => key, decode = (change = () => {}) => { const packed = packedRun(); change(packed); return decodeRun(packed); };
const view = { t: 0, method: "qcfuse", label: (name) => name, say, locale: "en", key: "k" };

test("the other run of a pair is drawn as outlines only, on the clock of both, with its own time", () => {
  const slow = decode((packed) => { packed.methods[1].ttft_s = 0.75; packed.provenance.mode = "live"; });
  const scene = timeScene(decode(), ["full", "qcfuse"], slow), geo = timelineGeometry(scene, 1000, 15), { pen, of } = recorder();
  drawTimeline(pen, geo, { ...view, ghost: "live" }, COLORS);
  const outlines = of("frame").map(([x, , w]) => [x, x + w]), expected = scene.blocks.flatMap((block) => block.ghost.lanes).flatMap(({ stretches }) => stretches);
  assert.equal(outlines.length, expected.length);
  expected.forEach(([from, to], i) => { assert.ok(Math.abs(outlines[i][0] - xAt(geo, from)) < 1e-6 && Math.abs(outlines[i][1] - xAt(geo, to)) < 1e-6); });
  const words = of("text").map(([text]) => text);
  assert.ok(words.includes("0.75 s") && words.filter((text) => text === "ghost_live").length === 2);
  for (const block of geo.blocks) for (const { y } of block.outlines) assert.ok(block.lanes.every((lane) => y >= lane.y + lane.h), "beneath the lanes of the run shown");
});

test("without another run nothing is outlined and the lanes stand as before", () => {
  const { pen, of } = recorder(), geo = timelineGeometry(timeScene(decode(), ["full", "qcfuse"]), 1000, 15);
  drawTimeline(pen, geo, view, COLORS);
  assert.deepEqual(of("frame"), []);
  assert.ok(geo.h < timelineGeometry(timeScene(decode(), ["full", "qcfuse"], decode()), 1000, 15).h);
});

test("two questions stand in three rows, each with its own colour and hatch, over the tokens they are about", () => {
  const run = decode(), other = decode((packed) => { packed.methods[1].rows = bits([2, 6, 8, 9], 10); packed.methods[1].ranking_is_scores = false; packed.question = "Who?"; });
  const flip = flipOf(run, other, "qcfuse", 0.5), scene = mapScene(run, run.methods[1], 0.5, null, 10, flip), geo = mapGeometry(scene, 1000, 400, 15), { pen, of } = recorder();
  assert.deepEqual(flip.counts, [2, 1, 1]);
  drawFlip(pen, scene.flip, geo, 30, say, COLORS);
  const drawn = of("rect").filter(([, , , , color]) => COLORS.flip.includes(color)).flatMap(([x, , w, , color]) => Array.from({ length: Math.round((w / geo.width) * 10) }, (_, i) => [Math.round(((x - geo.left) / geo.width) * 10) + i, color]));
  assert.deepEqual(drawn, [[3, "violet"], [7, "violet"], [6, "orange"], [2, "pink"]]);
  assert.deepEqual(new Set(of("hatch").map(([, , , , kind]) => kind)), new Set(["/", null, "\\"]));
  assert.deepEqual(of("text").map(([text]) => text), ["flip_a", "A", "flip_both", "AB", "flip_b", "B"]);
  const plain = mapGeometry(mapScene(run, run.methods[1], 0.5, null, 10), 1000, 400, 15);
  assert.ok(geo.top > plain.top && geo.row < plain.row, "the rows make room");
});
