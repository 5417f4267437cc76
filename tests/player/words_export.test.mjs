import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { chromeTrace } from "../../assets/player/core/chrome_trace.js";
import { methodsCsv } from "../../assets/player/core/csv.js";
import { decodeRun, methodOf } from "../../assets/player/core/decode.js";
import { splitAtDifference } from "../../assets/player/core/diff.js";
import { conditionsOf, factsOf } from "../../assets/player/core/facts.js";
import { sceneState, sentenceOf } from "../../assets/player/core/tour.js";
import * as words from "../../assets/player/core/words.js";
import { packedRun } from "./helpers.mjs";

const run = decodeRun(packedRun());
const read = (name) => JSON.parse(readFileSync(new URL(`../../assets/player/${name}`, import.meta.url)));

test("numbers read as those of the page", () => {
  assert.deepEqual([2.311, 0.084, 0.0004, 0, 123.4, NaN].map((v) => words.seconds(v)), ["2.31 s", "84 ms", "0.4 ms", "0 ms", "123 s", "–"]);
  assert.deepEqual([999, 1500, 101607168].map((v) => words.bytes(v)), ["999 B", "1.5 kB", "102 MB"]);
  assert.equal(words.percent(0.3), "30 %");
  assert.equal(words.times(2.42), "2.4×");
  assert.equal(words.seconds(2.311, "de"), "2,31 s");
});

test("line ends and blanks of a token stay visible", () => {
  assert.deepEqual([" lock", "\n", " ", "a\nb"].map((t) => words.tokenLabel(t)), ["lock", "⏎", "␣", "a⏎b"]);
  assert.equal(words.tokenLabel("x".repeat(200_000)).length, 24);
});

test("a placeholder without a value is an error, texts from outside are not patterns", () => {
  assert.equal(words.fill("{a} of {b}", { a: "{b}", b: "2" }), "{b} of 2");
  assert.throws(() => words.fill("{c}", {}), /\{c\}/);
});

test("every language has every text with the same placeholders", () => {
  const strings = read("strings.json"), places = (text) => [...text.matchAll(/\{([^{}]+)\}/gu)].map((m) => m[1]).sort().join();
  assert.deepEqual(Object.keys(strings), ["en", "es", "de", "zh"]);
  for (const lang of Object.keys(strings)) {
    assert.deepEqual(Object.keys(strings[lang]).sort(), Object.keys(strings.en).sort(), lang);
    for (const key of Object.keys(strings.en)) assert.equal(places(strings[lang][key]), places(strings.en[key]), `${lang} ${key}`);
  }
  assert.equal(words.pickLanguage(strings, ["fr-FR", "de-AT"]), "de");
  assert.equal(words.phrasebook(strings, "xx")("play"), strings.en.play);
});

test("an answer differs from the first word that is another", () => {
  assert.deepEqual(splitAtDifference("It is red.", "It is blue."), { same: "It is ", differs: "red.", equal: false, index: 2 });
  assert.ok(splitAtDifference("It  is\nblue.", "It is blue.").equal);
  assert.equal(splitAtDifference("It is", "It is blue.").equal, false);
});

test("facts are the run's numbers", () => {
  const facts = factsOf(run, 0.2);
  assert.deepEqual([facts["qcfuse.ttft"], facts["qcfuse.speedup"], facts["qcfuse.picked"], facts["qcfuse.at"], facts.stored, facts["qcfuse.anchors"]], ["0.50 s", "2.0×", "3", "1", "1.0 kB", "2"]);
  const holds = conditionsOf(run);
  assert.ok(holds["full.gold"] && holds["qcfuse.misses"] && holds["epic.ttft<qcfuse.ttft"] && !holds["qcfuse.ttft<epic.ttft"]);
});

test("the tour has ten scenes, each with a state and sentences that end without conditions", () => {
  const tour = read("tour.json");
  assert.equal(tour.length, 10);
  for (const scene of tour) {
    assert.equal(scene.say.at(-1).if, undefined, scene.id);
    const digits = scene.say.flatMap((version) => ["en", "es", "de", "zh"].map((lang) => version[lang].replace(/\{[^{}]+\}/gu, ""))).filter((text) => /\d/u.test(text));
    assert.deepEqual(digits, [], `${scene.id} types a number`);
    const state = sceneState(scene, run);
    assert.ok(state.methods.includes(state.method) && state.time >= 0);
  }
  assert.ok(tour.some((scene) => scene.id === "loses"));
});

test("a scene on a run that lacks its methods still says something true", () => {
  const only = { ...run, methods: [methodOf(run, "full")] };
  for (const scene of read("tour.json")) {
    const state = sceneState(scene, only);
    assert.deepEqual(state.methods, ["full"]);
    assert.ok(sentenceOf(scene, only, state.ratio, "en").length > 10);
  }
});

test("a Chrome trace holds every span in microseconds", () => {
  const trace = chromeTrace(run, (name) => name), spans = trace.traceEvents.filter((event) => event.ph === "X");
  assert.equal(spans.length, run.methods.reduce((sum, method) => sum + method.spans.length, 0));
  const load = spans.find((event) => event.name === "load 1");
  assert.ok(Math.abs(load.ts - 80_000) < 1e-6 && Math.abs(load.dur - 40_000) < 1e-6);
  assert.deepEqual(load.args, { layer: 1, size_bytes: 1000 });
});

test("CSV has a row per method with its source, and no cell is a formula", () => {
  const lines = methodsCsv(run).trim().split("\r\n");
  assert.equal(lines.length, 4);
  assert.ok(lines[2].startsWith("qcfuse,0.5,5,0.5,3,0.4,0.6"));
  assert.ok(lines[2].includes(",'=It is red.,replay,Tiny,CPU,"));
});
