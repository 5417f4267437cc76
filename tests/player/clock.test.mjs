import assert from "node:assert/strict";
import { test } from "node:test";
import * as clock from "../../assets/player/core/clock.js";
import { decodeRun, methodOf } from "../../assets/player/core/decode.js";
import { phaseAt, phasesOf } from "../../assets/player/core/phases.js";
import { packedRun } from "./helpers.mjs";

const run = decodeRun(packedRun());
const full = methodOf(run, "full"), qcfuse = methodOf(run, "qcfuse");
const times = clock.layerTimes(qcfuse, run.num_layers);

test("a layer is done with its last piece of work", () => {
  assert.deepEqual([...times.done], [0.16, 0.25, 0.4, 0.48]);
  assert.deepEqual([...times.start], [0.08, 0.17, 0.25, 0.42]);
});

test("a layer is read with its own load, not with what the selection read early", () => {
  assert.deepEqual([...times.read], [Infinity, 0.12, 0.16, 0.24]);
});

test("of a run without times per layer all layers are done with the first token, and none is said to have begun", () => {
  const whole = { ...qcfuse, spans: [{ lane: "device", stage: "recompute", layer: -1, start_s: 0.1, end_s: 0.4, size_bytes: 0 }] };
  const told = clock.layerTimes(whole, 4), at = (t) => { const f = clock.frontier(told, t); return [f.done, f.running, f.read]; };
  assert.deepEqual([at(0.39), at(0.4)], [[0, -1, 0], [4, -1, 0]]);
  assert.deepEqual([...told.start], Array(4).fill(Infinity));
  assert.deepEqual([...clock.layerTimes({ ...whole, spans: [], ttft_s: 0.3 }, 4).done], Array(4).fill(0.3));
});

test("the frontier moves layer by layer", () => {
  const at = (t) => { const f = clock.frontier(times, t); return [f.done, f.running, f.read]; };
  assert.deepEqual(at(0), [0, -1, 0]);
  assert.deepEqual(at(0.1), [0, 0, 0]);
  assert.deepEqual(at(0.165), [1, -1, 2]);
  assert.deepEqual(at(0.335), [2, 2, 3]);
  assert.deepEqual(at(1), [4, -1, 3]);
});

test("frontiers never go back in time", () => {
  let before = { done: 0, read: 0 };
  for (let t = 0; t < 0.6; t += 0.004) {
    const now = clock.frontier(times, t);
    assert.ok(now.done >= before.done && now.read >= before.read);
    before = now;
  }
});

test("stalls add up", () => assert.ok(Math.abs(clock.stallTime(qcfuse) - 0.03) < 1e-9));

test("answers come after the lane's end, a part with every token, whole with the last", () => {
  assert.equal(clock.firstTokenTime(qcfuse), 0.5);
  assert.equal(clock.answerAt(qcfuse, 0.499), "");
  assert.equal(clock.answerAt(qcfuse, 0.5), "=It");
  assert.equal(clock.tokensOut(qcfuse, 0.6), 2);
  assert.equal(clock.answerAt(qcfuse, 0.8), qcfuse.answer);
  assert.equal(clock.clockEnd([full, qcfuse]), 1.3);
});

test("a method without spans ends at its time to first token", () => assert.equal(clock.firstTokenTime(methodOf(run, "epic")), 0.4));

test("steps go from event to event and stay within", () => {
  const all = clock.instants([qcfuse]);
  assert.equal(clock.stepTime(all, 0, 1), 0.05);
  assert.equal(clock.stepTime(all, 0.055, -1), 0.05);
  assert.equal(clock.stepTime(all, 0, -1), 0);
  assert.equal(clock.stepTime(all, all.at(-1), 1), all.at(-1));
});

test("four phases for a method that probes, one for full prefill", () => {
  const phases = phasesOf(run, qcfuse);
  assert.deepEqual(phases.map((p) => p.id), ["precompute", "probe", "select", "pipeline"]);
  assert.equal(phases[0].before_s, 0.75);
  assert.deepEqual([phases[3].start_s, phases[3].end_s], [0.08, 0.5]);
  assert.deepEqual([0, 0.01, 0.06, 0.3, 0.5].map((t) => phaseAt(phases, t)), ["precompute", "probe", "select", "pipeline", "answer"]);
  assert.deepEqual(phasesOf(run, full).map((p) => p.id), ["pipeline"]);
});
