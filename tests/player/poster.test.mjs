import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { decodeRun, methodOf } from "../../assets/player/core/decode.js";
import { flipOf } from "../../assets/player/core/flip.js";
import { kindOf } from "../../assets/player/core/kinds.js";
import { START } from "../../assets/player/core/state.js";
import { phrasebook } from "../../assets/player/core/words.js";
import { svgPen } from "../../assets/player/view/pen_svg.js";
import { drawPoster, posterPlan } from "../../assets/player/view/poster.js";
import { ghostWords, lanesIn, paintLanes } from "../../assets/player/view/timeline.js";
import { bits, packedRun } from "./helpers.mjs";

const STRINGS = JSON.parse(readFileSync(new URL("../../assets/player/strings.json", import.meta.url)));
const ANY = new Proxy({}, { get: () => "gold" });
const COLORS = new Proxy({ methods: ANY, stages: ANY, hatches: {}, flip: ["violet", "orange", "pink"] }, { get: (own, name) => own[name] ?? String(name) });
const decode = (change = () => {}) => { const packed = packedRun(); change(packed); return decodeRun(packed); };
const RUN = decode(), LIVE = decode((packed) => { packed.provenance = { ...packed.provenance, mode: "live", device: "Another one" }; packed.methods[1].ttft_s = 0.75; });
const OTHER = decode((packed) => { packed.question = "Who?"; packed.methods[1].rows = bits([2, 6, 8, 9], 10); packed.methods[1].ranking_is_scores = false; });

function modelOf({ ghost = null, other = null, lang = "en" } = {}) {
  const say = Object.assign(phrasebook(STRINGS, lang), { lang }), method = methodOf(RUN, "qcfuse"), kind = kindOf(RUN);
  const state = { ...START, methods: ["full", "qcfuse"], method: "qcfuse", ratio: 0.5, time: 1 };
  const model = { run: RUN, state, method, say, ghost, locale: lang, label: (name) => name, colors: COLORS, verdict: "It is so.", title: kind.title(RUN, lang), source: kind.source(RUN, say, lang), flip: flipOf(RUN, other, "qcfuse", 0.5) };
  return Object.assign(model, kind.look(RUN, method, state, (key, make) => make()));
}

// Every call of a pen, its origin moved back to that of the picture's part.
function callsOf(draw) {
  const calls = [], note = (kind) => (...args) => { calls.push([kind, ...args]); };
  const pen = { ...Object.fromEntries(["rect", "hatch", "frame", "line", "path", "shape", "text"].map((kind) => [kind, note(kind)])), width: (text) => text.length * 7, stamp: (key, x, y, w, h, paint) => paint(pen) };
  draw(pen);
  return calls;
}
const posterOf = (model) => callsOf((pen) => drawPoster(pen, posterPlan(model), model, null));
const textsOf = (model) => posterOf(model).filter(([kind]) => kind === "text").map(([, text]) => text);
const outlinesIn = (calls) => calls.filter(([kind, , , , , color]) => kind === "frame" && color === "muted").map(([, , , w, h]) => [w, h]);

test("a file shows the other run of a pair as the screen does, and says what it is", () => {
  const model = modelOf({ ghost: LIVE }), plan = posterPlan(model), own = outlinesIn(callsOf((pen) => paintLanes(pen, lanesIn(plan.inner, 17, model), model)));
  assert.ok(own.length > 2 && plan.height > posterPlan(modelOf()).height);
  assert.deepEqual(outlinesIn(posterOf(model)), own);
  const texts = textsOf(model), said = texts.join("");
  assert.ok(texts.includes("0.75 s"), "the ghost's own time");
  assert.ok(said.includes(ghostWords(model)) && said.includes("Another one") && said.includes("Another machine: the two times are no comparison."));
  assert.ok(!said.includes("Key L"), "a file has no keys");
});

test("a file shows the choice for a second question, and says what it is", () => {
  const texts = textsOf(modelOf({ other: OTHER }));
  for (const row of ["A", "AB", "B"]) assert.ok(texts.includes(row));
  assert.ok(texts.join("").includes("“Who?”"));
});

test("without a second run or question nothing is outlined and nothing is said of one", () => {
  const calls = posterOf(modelOf()), texts = textsOf(modelOf());
  assert.deepEqual(outlinesIn(calls), []);
  assert.ok(!texts.includes("AB") && !texts.some((text) => /Outlined|Question B/u.test(text)));
});

for (const lang of Object.keys(STRINGS)) {
  test(`everything said stands within the file, in ${lang}`, () => {
    const model = modelOf({ ghost: LIVE, other: OTHER, lang }), plan = posterPlan(model), lows = posterOf(model).filter(([kind, , x]) => kind === "text" && x === 40).map(([, , , y]) => y);
    assert.ok(plan.said.length >= 2 && Math.max(...lows) < plan.height);
    assert.deepEqual([...lows].sort((a, b) => a - b), lows, "from top to bottom");
    const { pen, svg } = svgPen();
    drawPoster(pen, plan, model, 3);
    assert.ok(!/NaN|undefined/u.test(svg(plan.width, plan.height, "panel", model.title)));
  });
}
