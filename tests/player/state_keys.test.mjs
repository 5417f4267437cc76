import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { actionOf, HELP, isTyping } from "../../assets/player/core/keys.js";
import { legal, reduce, START } from "../../assets/player/core/state.js";
import { fromQuery, shared, toQuery } from "../../assets/player/core/url.js";

const LIMITS = { end_s: 2, longest_s: 2, names: ["full", "reuse", "qcfuse", "qcfuse+k_shift"], numTokens: 1000, numLayers: 30, numScenes: 10 };
const begin = { ...START, methods: ["full", "qcfuse"], method: "qcfuse", ratio: 0.3 };
const after = (state, ...actions) => actions.reduce((s, action) => reduce(s, action, LIMITS), state);
const press = (key, parts = {}) => ({ key, target: { tagName: "BODY" }, ...parts });

test("a state is never changed in place", () => {
  const next = after(begin, { type: "seek", time: 1 });
  assert.equal(begin.time, 0);
  assert.ok(Object.isFrozen(next) && next.time === 1);
});

test("the playhead stays on the clock and playing ends with it", () => {
  assert.equal(after(begin, { type: "seek", time: -1 }).time, 0);
  assert.equal(after(begin, { type: "seek", time: 9 }).time, 2);
  const playing = after(begin, { type: "play" });
  assert.ok(playing.playing);
  const ended = after(playing, { type: "tick", time: 2.1 });
  assert.deepEqual([ended.playing, ended.time], [false, 2]);
  assert.deepEqual([after(ended, { type: "play" }).time, after(ended, { type: "play" }).playing], [0, true]);
});

test("methods are shown in the run's order, at least one stays", () => {
  assert.deepEqual(after(begin, { type: "toggleMethod", method: "reuse" }).methods, ["full", "reuse", "qcfuse"]);
  const one = after(begin, { type: "toggleMethod", method: "qcfuse" });
  assert.deepEqual([one.methods, one.method], [["full"], "full"]);
  assert.deepEqual(after(one, { type: "toggleMethod", method: "full" }).methods, ["full"]);
  assert.deepEqual(after(begin, { type: "method", method: "reuse" }).methods, ["full", "reuse", "qcfuse"]);
  assert.equal(after(begin, { type: "nextMethod" }).method, "full");
});

test("zooming keeps the token under the pointer, and all of it is null", () => {
  const near = after(begin, { type: "zoom", factor: 0.5, at: 250 });
  assert.deepEqual(near.zoom, [125, 625]);
  assert.equal(after(near, { type: "zoom", factor: 2, at: 250 }).zoom, null);
  assert.deepEqual(after(near, { type: "pan", by: -5 }).zoom, [0, 500]);
  assert.equal(after(begin, { type: "zoom", factor: 1e-9, at: 0 }).zoom[1], 24);
});

test("an unknown action is named", () => assert.throws(() => after(begin, { type: "fly" }), /fly/));

test("values from outside that the run does not have are dropped", () => {
  const kept = legal({ method: "evil", methods: ["full"], ratio: 7, token: 2000, layer: 3, time: 1, zoom: [5, 2], panel: "map", scene: 11, nothing: 1 }, LIMITS);
  assert.deepEqual(kept, { methods: ["full"], layer: 3, time: 1, panel: "map" });
});

test("a link restores the state", () => {
  const state = after(begin, { type: "set", values: { methods: ["full", "qcfuse+k_shift"], method: "qcfuse+k_shift", ratio: 0.155, layer: 19, token: 143, zoom: [100, 400], time: 0.41234, panel: "answers", scene: 3, speed: 0.1, theme: "dark", lang: "de", present: true, contrast: true, scenario: "a b&c=+ü" } });
  const query = toQuery(state);
  assert.match(query, /(^|&)m=full,qcfuse%2Bk_shift(&|$)/);
  const again = after(START, { type: "set", values: fromQuery(query) });
  assert.deepEqual(shared(again), shared(state));
});

test("the start has an empty query, other keys of the page stay, nonsense is dropped", () => {
  assert.equal(toQuery(START), "");
  assert.equal(toQuery(START, "__theme=dark&t=3"), "__theme=dark");
  assert.deepEqual(fromQuery("t=abc&z=9&tok=&r=0.2"), { ratio: 0.2 });
});

test("keys do nothing while typing or with a modifier", () => {
  for (const tagName of ["INPUT", "TEXTAREA", "SELECT"]) assert.ok(isTyping({ tagName }));
  assert.ok(isTyping({ tagName: "DIV", isContentEditable: true }));
  assert.equal(actionOf(press("k", { target: { tagName: "INPUT" } }), begin), null);
  assert.equal(actionOf(press("p", { ctrlKey: true }), begin), null);
});

test("the clicker's keys belong to us only in a talk or a tour", () => {
  assert.equal(actionOf(press("PageDown"), begin), null);
  assert.equal(actionOf(press(" "), begin), null);
  for (const on of [{ ...begin, present: true }, { ...begin, scene: 2 }]) {
    assert.deepEqual(actionOf(press("PageDown"), on), { type: "moveScene", by: 1 });
    assert.deepEqual(actionOf(press("PageUp"), on), { type: "moveScene", by: -1 });
    assert.deepEqual(actionOf(press("b"), on), { type: "blank" });
    assert.deepEqual(actionOf(press("."), on), { type: "blank" });
  }
});

test("a focused button keeps blank and Enter", () => {
  const on = { ...begin, present: true };
  assert.equal(actionOf(press(" ", { target: { tagName: "BUTTON" } }), on), null);
  assert.deepEqual(actionOf(press("PageDown", { target: { tagName: "BUTTON" } }), on), { type: "moveScene", by: 1 });
});

test("digits are scenes, 0 the tenth", () => {
  assert.deepEqual(actionOf(press("3"), begin), { type: "scene", scene: 3 });
  assert.deepEqual(actionOf(press("0"), begin), { type: "scene", scene: 10 });
});

test("every line of the help has a text in every language", () => {
  const strings = JSON.parse(readFileSync(new URL("../../assets/player/strings.json", import.meta.url)));
  for (const lang of Object.keys(strings)) for (const [, key] of HELP) assert.ok(strings[lang][key], `${lang} ${key}`);
});

test("picking takes a token and a layer, the arrows move the layer within the model", () => {
  const picked = after(begin, { type: "pick", token: 12, layer: null }, { type: "moveLayer", by: 1 });
  assert.deepEqual([picked.token, picked.layer], [12, 0]);
  assert.equal(after(picked, { type: "moveLayer", by: 99 }).layer, 29);
  assert.equal(after(picked, { type: "pick", token: null, layer: null }).token, null);
});

test("the pictures of a talk come round", () => {
  const panels = [1, 2, 3, 4].map((n) => after(begin, ...Array(n).fill({ type: "nextPanel" })).panel);
  assert.deepEqual(panels, ["answers", "text", "fidelity", "map"]);
});
