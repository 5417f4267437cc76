import assert from "node:assert/strict";
import { test } from "node:test";
import { budget, countDoc, isSelective, rowsAt, timeAt, unranked } from "../../assets/player/core/budget.js";
import { chunkAt, decodeRun, methodOf } from "../../assets/player/core/decode.js";
import { bestWord, columnMaxima, columnShares, cutoffScore, tokenFacts, topTokens } from "../../assets/player/core/tokens.js";
import { packedRun, TOKENS } from "./helpers.mjs";

const run = decodeRun(packedRun());
const qcfuse = methodOf(run, "qcfuse"), epic = methodOf(run, "epic");

test("tokens come back as they were, letters outside the basic plane and empty ones included", () => {
  assert.deepEqual(run.tokens, TOKENS);
  assert.equal(run.num_doc, 6);
});

test("a token longer than 127 letters keeps its length", () => {
  const packed = packedRun();
  packed.text = "a".repeat(300) + "b";
  packed.token_lens = Buffer.from([300 & 127 | 128, 300 >> 7, 1, 0, 0, 0, 0, 0, 0, 0, 0]).toString("base64");
  assert.deepEqual(decodeRun(packed).tokens.slice(0, 2), ["a".repeat(300), "b"]);
});

test("another version is refused", () => {
  assert.throws(() => decodeRun({ ...packedRun(), format: "fusescope-player/9" }), /fusescope-player\/1/);
  assert.throws(() => decodeRun(null));
});

test("a ranking left out is the order of the scores, ties by position", () => {
  assert.deepEqual([...qcfuse.ranking], [6, 3, 7, 5, 2, 4]);
  assert.deepEqual([...qcfuse.ranks], [0, 0, 5, 2, 6, 4, 1, 3, 0, 0]);
  assert.deepEqual([...epic.ranking], [2, 5, 6, 3, 7, 4]);
});

test("spans keep lane, stage, layer, times and bytes", () => {
  assert.deepEqual(qcfuse.spans[1], { lane: "disk", stage: "load", layer: 2, start_s: 0.05, end_s: 0.06, size_bytes: 500 });
});

test("the budget is the engine's: max(1, floor(r N)), 0 at 0", () => {
  assert.deepEqual([0, 0.001, 0.3, 0.5, 1].map((r) => budget(r, 6)), [0, 1, 1, 3, 6]);
  assert.equal(budget(0.3, 10), 3);
});

test("sets grow with the ratio and never lose a token", () => {
  let before = null;
  for (let r = 0; r <= 1.0001; r += 0.05) {
    const mask = rowsAt(run, qcfuse, r);
    assert.equal(countDoc(run, mask), budget(r, run.num_doc));
    assert.deepEqual([...mask.slice(8)], [1, 1]);
    if (before) before.forEach((bit, i) => assert.ok(mask[i] >= bit));
    before = mask;
  }
});

test("at the measured ratio the rows are those that were run, and no mask is ever changed", () => {
  assert.equal(rowsAt(run, qcfuse, 0.5), qcfuse.rows);
  rowsAt(run, qcfuse, 1);
  assert.deepEqual([...qcfuse.rows], [0, 0, 0, 1, 0, 0, 1, 1, 1, 1]);
  assert.equal(rowsAt(run, methodOf(run, "full"), 0.1).reduce((a, b) => a + b), 10);
});

test("only methods that chose some but not all tokens are rivals", () => {
  assert.deepEqual(run.methods.map((m) => isSelective(run, m)), [false, true, true]);
});

test("a time is measured at a point, in between a line, outside nothing", () => {
  const points = [[0.1, 1], [0.3, 2]];
  assert.deepEqual(timeAt(points, 0.3), { seconds: 2, measured: true });
  assert.deepEqual(timeAt(points, 0.2), { seconds: 1.5, measured: false });
  assert.equal(timeAt(points, 0.05), null);
  assert.equal(timeAt(points, 0.31), null);
});

test("facts of a token: score, rank, cut-off, anchor, answer, and who else chose it", () => {
  const facts = tokenFacts(run, qcfuse, 0.5, 3);
  assert.equal(facts.text, " clés");
  assert.deepEqual([facts.rank, facts.cut, facts.score, facts.recomputed, facts.answer, facts.anchor], [2, 3, 0.5, true, true, false]);
  assert.deepEqual(facts.rivals, [{ name: "qcfuse", chose: true, rank: 2 }, { name: "epic", chose: false, rank: 4 }]);
  assert.equal(facts.chunk.number, 1);
  assert.equal(tokenFacts(run, qcfuse, 0.5, 0).part, "system");
  assert.deepEqual(tokenFacts(run, qcfuse, 0.5, 9).rivals, []);
  assert.equal(chunkAt(run, 9), null);
});

test("the cut-off score is that of the last token that fits", () => {
  assert.equal(cutoffScore(run, qcfuse, 0.5), 0.5);
  assert.equal(cutoffScore(run, qcfuse, 0), null);
  assert.equal(cutoffScore(run, epic, 0.5), null);
  assert.deepEqual(topTokens(run, qcfuse, 0.5, 2).map((f) => f.position), [6, 3]);
});

test("columns hold every token once when there are fewer columns, and repeat tokens when there are more", () => {
  const mask = Uint8Array.from([1, 0, 1, 1]);
  assert.deepEqual([...columnShares(mask, 0, 4, 2)], [0.5, 1]);
  assert.deepEqual([...columnShares(mask, 0, 4, 8)], [1, 1, 0, 0, 1, 1, 1, 1]);
  assert.deepEqual([...columnMaxima(Float32Array.from([3, 5]), 1, 0, 4, 2)], [3, 5]);
  assert.ok(Number.isNaN(columnMaxima(Float32Array.from([3]), 2, 0, 2, 1)[0]));
});

test("the best word is the best-ranked token with letters", () => {
  const packed = packedRun();
  assert.equal(bestWord(run, qcfuse), 6);
  packed.text = packed.text.replace(" lock", "\n\n\n\n\n");
  const other = decodeRun(packed);
  assert.equal(bestWord(other, methodOf(other, "qcfuse")), 3);
  assert.equal(bestWord(run, methodOf(run, "full")), null);
});

test("a ranking that a server kept to itself is not called none", () => {
  const served = { ...run, provenance: { ...run.provenance, versions: { sglang: "0.5.23" } } };
  assert.equal(unranked(served, qcfuse), "budget_untold");
  assert.equal(unranked(served, methodOf(served, "full")), "budget_none");
  assert.equal(unranked(run, qcfuse), "budget_none");
});
