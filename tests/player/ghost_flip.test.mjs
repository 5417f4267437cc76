import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRun, methodOf } from "../../assets/player/core/decode.js";
import { flipOf } from "../../assets/player/core/flip.js";
import { arePair, comparable, differences, ghostOf } from "../../assets/player/core/ghost.js";
import { timeScene } from "../../assets/player/core/time_scene.js";
import { bits, packedRun } from "./helpers.mjs";

const from = (parts, change = () => {}) => {
  const packed = { ...packedRun(), ...parts };
  change(packed);
  return decodeRun(packed);
};
const live = (parts = {}) => from({ ...parts, provenance: { ...packedRun().provenance, mode: "live", ...parts.provenance } });
const RUN = from({});

test("a ghost's lanes are the stretches in which they were at work, before the first token", () => {
  const { lanes, first_s, ttft_s } = ghostOf(RUN, "qcfuse");
  assert.deepEqual(lanes.map(({ lane }) => lane), ["disk", "device"]);
  assert.deepEqual(lanes[0].stretches, [[0.05, 0.06], [0.08, 0.16], [0.2, 0.24]]);
  assert.deepEqual(lanes[1].stretches, [[0, 0.5]]);
  assert.deepEqual([first_s, ttft_s], [0.5, 0.5]);
  assert.equal(ghostOf(RUN, "none"), null);
  assert.equal(ghostOf(null, "full"), null);
});

test("both runs of a pair stand on one clock", () => {
  const slow = from({}, (packed) => { packed.methods[0].spans.end_s = packed.methods[0].spans.start_s = Buffer.from(new Uint8Array(new Float64Array([1, 2, 3, 4, 9]).buffer)).toString("base64"); });
  assert.equal(timeScene(RUN, ["qcfuse"]).end_s, 0.8);
  assert.equal(timeScene(RUN, ["qcfuse"], slow).end_s, 0.8, "the ghost's other methods are not shown");
  const both = timeScene(RUN, ["full", "qcfuse"], slow);
  assert.equal(both.end_s, 9);
  assert.equal(both.blocks[0].ghost.first_s, 9);
  assert.equal(timeScene(RUN, ["full"]).blocks[0].ghost, null);
});

test("what keeps two runs from being compared is named", () => {
  const named = (parts) => differences(RUN, live(parts));
  assert.deepEqual(named({}), []);
  assert.deepEqual(named({ provenance: { device: "H200" } }), ["ghost_machine"]);
  assert.deepEqual(named({ provenance: { num_threads: 64 } }), ["ghost_machine"]);
  assert.deepEqual(named({ question: "Who?", ratio: 0.1, provenance: { model: "Big" } }), ["ghost_model", "ghost_question", "ghost_ratio"]);
  assert.deepEqual(named({ chunks: RUN.chunks.slice(1) }), ["ghost_chunks"]);
  assert.ok(comparable(RUN, live()) && !comparable(RUN, live({ provenance: { dtype: "bfloat16" } })));
});

test("a pair is of one scenario, one of it live", () => {
  assert.ok(arePair(RUN, live()) && arePair(live(), RUN));
  for (const other of [null, undefined, RUN, live({ scenario: "other" })]) assert.ok(!arePair(RUN, other));
  assert.ok(!arePair(from({ scenario: "" }), live({ scenario: "" })));
});

test("two questions: every document token is in one group at most, and the counts are of the sets", () => {
  const other = from({ question: "Who?" }, (packed) => {
    packed.methods[1].rows = bits([2, 6, 8, 9], 10);
    packed.methods[1].ranking_is_scores = false;
    packed.methods[1].ranking = Buffer.from(new Uint8Array(new Uint32Array([6, 2, 3, 4, 5, 7]).buffer)).toString("base64");
    packed.ratio = 0.4;
  });
  const { masks, counts, question } = flipOf(RUN, other, "qcfuse", 0.5);
  const tokens = masks.map((mask) => [...mask.keys()].filter((p) => mask[p]));
  assert.deepEqual(tokens, [[7], [3, 6], [2]], "at half of six: 3, 6, 7 as run for A; 6, 2, 3 by B's ranking");
  assert.deepEqual([counts, question], [[1, 2, 1], "Who?"]);
  const tenth = flipOf(RUN, other, "qcfuse", 0.1);
  assert.deepEqual(tenth.masks.map((mask) => [...mask.keys()].filter((p) => mask[p])), [[], [6], []]);
  const all = flipOf(RUN, other, "qcfuse", 1);
  assert.deepEqual(all.counts, [0, 6, 0]);
});

test("two questions are set side by side only over the same tokens by the same model and method", () => {
  const refused = [null, from({ system_len: 1 }), from({ provenance: { ...packedRun().provenance, model: "Big" } }), from({ text: packedRun().text.replace("clés", "clès") })];
  for (const other of refused) assert.equal(flipOf(RUN, other, "qcfuse", 0.5), null);
  assert.equal(flipOf(RUN, RUN, "none", 0.5), null);
  assert.ok(methodOf(RUN, "epic") && flipOf(RUN, RUN, "epic", 0.5));
});
