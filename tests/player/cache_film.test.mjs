import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { unpackInts } from "../../assets/player/core/cache_decode.js";
import * as facts from "../../assets/player/core/cache_facts.js";
import { methodsCsv } from "../../assets/player/core/csv.js";
import { methodOf } from "../../assets/player/core/decode.js";
import { decode, kindOf } from "../../assets/player/core/kinds.js";
import { START, legal, reduce } from "../../assets/player/core/state.js";
import { sceneState, sentenceOf } from "../../assets/player/core/tour.js";
import { fromQuery, toQuery } from "../../assets/player/core/url.js";
import { phrasebook } from "../../assets/player/core/words.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../assets/player/${name}`, import.meta.url)));
const b64 = (bytes) => Buffer.from(bytes).toString("base64");

// Written out apart from the packer: no difference is ever said to repeat.
const ints = (values) => {
  const bytes = [];
  let before = 0;
  for (const value of values) {
    let code = value >= before ? 2 * (value - before) : 2 * (before - value) - 1;
    for (; code > 127; code = Math.floor(code / 128)) bytes.push((code & 127) | 128);
    bytes.push(code, 0);
    before = value;
  }
  return `i${b64(bytes)}`;
};
const floats = (Kind, letter, values) => letter + b64(new Uint8Array(new Kind(values).buffer));
const EVICTED = { request: [1, 1, 1, 3, 3], block: [9, 8, 4, 7, 6], kind: [1, 1, 4, 0, 0], queue: [2, 2, 0, 1, 1], depth: [7, 6, 2, 5, 3], hits: [0, 0, 1, 2, 2], suffered: [2, 2, -1, -1, -1], regret: [1, 1, 0, 0, 0], last: [0, 0, 0, 1, 1] };

const policy = (name, hits) => ({
  policy: name, mode: "simulated", created: "2026", commit: "abc", params: {}, predictor: "none", cost: "modelled", elapsed_s: 0.01,
  requests: { hit_blocks: ints(hits), hit_tokens: ints(hits.map((n) => 10 * n)), num_inserted: ints([4, 4, 2, 2]), ttft_s: floats(Float32Array, "f", [1, 1, 1, 1]), missed_0: ints([40, 10, 0, 0]), missed_1: ints([0, 0, 20, 0]), missed_2: ints([0, 0, 0, 5]), missed_3: ints([2, 2, 2, 2]) },
  evictions: Object.fromEntries(Object.entries(EVICTED).map(([key, values]) => [key, ints(values)])),
  snapshots: { request: ints([0, 2]), queues: ints([1, 2, 1, 0, 0, 4, 3, 1]), kinds: ints([4, 0, 0, 0, 0, 8, 0, 0, 0, 0]), weights: floats(Float32Array, "f", [1, 1, 0.5, 2]) }, weight_names: ["alpha chat", "w user"],
});
const packed = () => ({
  format: "fusescope-cache-player/1", provenance: { mode: "simulated", created: "2026", commit: "abc" }, scenario: "load", workload: "load", title: { en: "A load", de: "Eine Last" }, seed: 0, capacity_blocks: 10, block_tokens: 10, num_blocks: 50, notes: [],
  requests: { time_s: floats(Float64Array, "d", [0, 2.5, 4, 9]), session: ints([0, 1, 0, 1]), prompt_blocks: ints([5, 5, 5, 5]), prompt_tokens: ints([52, 52, 52, 52]) }, limit: ints([0, 4, 4, 4]), methods: [policy("lru", [0, 1, 2, 3]), policy("saecache", [0, 2, 2, 2])],
});
const film = decode(packed()), lru = methodOf(film, "lru"), kind = kindOf(film);
const close = (a, b) => assert.ok(Math.abs(a - b) < 1e-12, `${a} is not ${b}`);

test("differences and how often they repeat give back the numbers", () => {
  assert.deepEqual([...unpackInts(b64([10, 0, 1, 1, 0, 1]))], [5, 4, 3, 3, 3]);
  assert.deepEqual([...unpackInts("")], []);
  assert.deepEqual([...unpackInts(ints([300, -70_000, 2 ** 31 - 1, -1]).slice(1))], [300, -70_000, 2 ** 31 - 1, -1]);
});

test("times of evictions follow from those of the requests", () => {
  assert.deepEqual([...lru.evictions.idle_s], [2.5, 2.5, 2.5, 6.5, 6.5]);
  assert.deepEqual([...lru.evictions.early_s], [1.5, 1.5, 0, 0, 0]);
  assert.deepEqual([...lru.starts], [0, 0, 3, 3, 5]);
});

test("rates so far, of the second half and of the limit", () => {
  close(facts.rateOf(film, lru, 0), 0);
  close(facts.rateOf(film, lru, 2), 30 / 156);
  close(facts.halfRate(film, lru), 50 / 104);
  close(facts.limitRate(film, 3), 12 / 20);
  assert.equal(facts.limitRate(decode({ ...packed(), limit: null }), 3), null);
});

test("blocks of one fate are one group, others are not", () => {
  assert.deepEqual(facts.leaving(lru, 0), []);
  const [pair, single] = facts.leaving(lru, 1);
  assert.deepEqual([pair.num, pair.from, pair.to, pair.suffered, pair.early_s, single.num, single.suffered], [2, 7, 6, 2, 1.5, 1, -1]);
  assert.deepEqual(facts.leaving(lru, 3).map(({ num, from }) => [num, from]), [[1, 5], [1, 3]]);
  assert.equal(facts.worstOf(lru), 1);
});

test("the cache is shown as of the last recorded moment", () => {
  assert.deepEqual([0, 1, 2, 3].map((i) => facts.momentAt(lru, i)), [0, 0, 1, 1]);
  assert.deepEqual(facts.bandsOf(film, lru, 1), [["evict_first", 0], ["structural", 4], ["chat", 3], ["agent", 1], ["free", 2]]);
  const plain = decode({ ...packed(), methods: [{ ...policy("fifo", [0, 0, 0, 0]), snapshots: { ...policy("fifo", [0]).snapshots, queues: ints([4, 0, 0, 0, 8, 0, 0, 0]) } }] });
  assert.deepEqual(facts.bandsOf(plain, plain.methods[0], 1), [["blocks", 8], ["free", 2]]);
});

test("the parts of a prompt add up, and a block's evidence is what had been learned by then", () => {
  const parts = facts.partsOf(lru, 2);
  assert.deepEqual(parts, [["hit", 20], ["evicted", 20], ["changed_prefix", 0], ["cold", 0], ["shorter", 2]]);
  assert.deepEqual(facts.learnedOf(lru, 1, { queue: 2, kind: 1 }), [["α", "chat", 1], ["w", "user", 1]]);
  assert.deepEqual(facts.learnedOf(lru, 3, { queue: 2, kind: 1 }), [["α", "chat", 0.5], ["w", "user", 2]]);
  assert.deepEqual(facts.learnedOf(lru, 3, { queue: 0, kind: 0 }), []);
  assert.deepEqual(facts.weightGroups({ weight_names: ["alpha chat", "alpha agent", "gamma", "open records"] }), [["alpha", [["chat", 0], ["agent", 1]]], ["gamma", [["", 2]]], ["open records", [["", 3]]]]);
});

test("steps go from request to request and stay within the load", () => {
  const step = (time, by) => kind.step(film, film.methods, time, by);
  assert.deepEqual([step(0, -1), step(0, 1), step(1.4, 1), step(1.4, -1), step(2, -1), step(3, 1)], [0, 1, 2, 1, 1, 3]);
  assert.equal(kind.end(film, film.methods), 3);
});

test("a place in a film survives the address", () => {
  const limits = { tab: "evict", names: ["lru", "saecache"], numTokens: 4, numLayers: 0, numScenes: 4, end_s: 3, longest_s: 3 };
  const state = reduce({ ...START, tab: "evict", scenario: "load" }, { type: "set", values: { method: "lru", methods: ["lru"], time: 2 } }, limits);
  assert.equal(toQuery(state), "tab=evict&sc=load&m=lru&look=lru&t=2");
  assert.deepEqual(legal(fromQuery("tab=evict&t=2&tok=9"), limits), { tab: "evict", time: 2 });
  assert.deepEqual(legal({ tab: "fuse" }, limits), {});
});

test("scenes on any film have a state and a sentence without a typed number", () => {
  for (const scene of read("evict_tour.json")) {
    const state = sceneState(scene, film);
    assert.ok(state.methods.includes(state.method) && state.time >= 0 && state.time <= 3, scene.id);
    for (const lang of ["en", "es", "de", "zh"]) {
      assert.ok(!/\{/u.test(sentenceOf(scene, film, null, lang)));
      assert.ok(scene.title[lang] && scene.say.every((version) => version[lang] && !/\d/u.test(version[lang].replace(/\{[^{}]+\}/gu, ""))), scene.id);
    }
    assert.equal(scene.say.at(-1).if, undefined);
  }
});

test("the sentence about losing is said only where it loses", () => {
  const scene = read("evict_tour.json").find(({ id }) => id === "evict-loses");
  assert.match(sentenceOf(scene, film, null, "en"), /costs 9\.62 points/u);
  const other = decode({ ...packed(), methods: [policy("lru", [0, 0, 0, 0]), policy("saecache", [0, 2, 2, 2])] });
  assert.doesNotMatch(sentenceOf(scene, other, null, "en"), /costs/u);
});

test("headline, points and CSV are the film's numbers", () => {
  const say = phrasebook(read("strings.json"), "en"), label = (name) => name.toUpperCase();
  assert.equal(facts.filmVerdict(film, lru, 3, say, "en", label), "LRU has found 28.8 % of the prompt tokens so far. Of the blocks it found 30.0 %; MIN, which sees the future, 60.0 %.");
  assert.deepEqual([0.0123, -0.0123, 0.0001].map((v) => facts.points(v, "en")), ["+1.2", "−1.2", "±0.0"]);
  const lines = methodsCsv(film).trim().split("\r\n");
  assert.ok(lines[1].startsWith("lru,load,0,10,10,4,0.28846") && lines.length === 3);
});
