import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { decodeRun, methodOf } from "../../assets/player/core/decode.js";
import { phrasebook } from "../../assets/player/core/words.js";
import { verdictOf } from "../../assets/player/view/header.js";
import { packedRun } from "./helpers.mjs";

const strings = JSON.parse(readFileSync(new URL("../../assets/player/strings.json", import.meta.url)));

function told(lang, name, change = () => {}) {
  const packed = packedRun();
  change(packed);
  const run = decodeRun(packed);
  return verdictOf({ run, method: methodOf(run, name), state: { ratio: run.ratio }, say: phrasebook(strings, lang), locale: lang, label: (known) => known });
}
const alone = (packed) => { packed.methods = packed.methods.filter(({ name }) => name === "qcfuse"); };
const slower = (seconds) => (packed) => { packed.methods.find(({ name }) => name === "qcfuse").ttft_s = seconds; };

test("the verdict compares with full prefill, and says so when there is next to no difference", () => {
  assert.equal(told("en", "qcfuse"), "qcfuse recomputes 50 % of 6 document tokens: first token after 0.50 s, 2.0× sooner than full prefill (1.00 s), but the expected answer is lost.");
  assert.match(told("en", "qcfuse", slower(1.02)), /after 1\.02 s, about as soon as full prefill \(1\.00 s\),/u);
  assert.match(told("en", "qcfuse", slower(2)), /2\.0× later than full prefill/u);
});

test("without full prefill the verdict is a whole sentence in every language", () => {
  const ends = { en: ".", es: ".", de: ".", zh: "。" };
  for (const lang of Object.keys(strings)) {
    const said = told(lang, "qcfuse", alone);
    assert.ok(said.endsWith(ends[lang]) && !/[,，]$/u.test(said.slice(0, -1)), said);
  }
});
