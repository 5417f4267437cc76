// Facts of a run by name, for sentences: a tour never holds a number of its own. Knows no DOM.
import { countDoc, isSelective, rowsAt } from "./budget.js";
import { stallTime } from "./clock.js";
import { methodOf } from "./decode.js";
import { splitAtDifference } from "./diff.js";
import * as words from "./words.js";

// Every placeholder that a sentence about this run may use. A method that was not run gives none.
export function factsOf(run, ratio, locale = "en") {
  const full = methodOf(run, "full");
  const facts = {
    doc: words.count(run.num_doc, locale), tokens: words.count(run.num_tokens, locale), chunks: words.count(run.chunks.length, locale),
    layers: String(run.num_layers), ratio: words.percent(run.ratio, locale), shown: words.percent(ratio, locale), question: run.question,
    gold: run.gold_answers[0] || words.NONE, stored: words.bytes(run.chunks.reduce((sum, chunk) => sum + chunk.size_bytes, 0), locale),
    precompute: words.seconds(run.chunks.reduce((sum, chunk) => sum + chunk.precompute_s, 0), locale),
  };
  for (const method of run.methods) {
    for (const [name, value] of Object.entries(methodFacts(run, method, full, ratio, locale))) facts[`${method.name}.${name}`] = value;
  }
  return facts;
}

function methodFacts(run, method, full, ratio, locale) {
  const picked = countDoc(run, method.rows);
  return {
    ttft: words.seconds(method.ttft_s, locale),
    speedup: full ? words.times(full.ttft_s / method.ttft_s, locale) : words.NONE,
    kl: words.decimals(method.quality.kl_to_full ?? NaN, 3, locale),
    picked: words.count(picked, locale), at: words.count(countDoc(run, rowsAt(run, method, ratio)), locale),
    share: words.percent(picked / run.num_doc, locale),
    // The system part is in the probe too, but it stands for itself.
    anchors: words.count(method.anchors ? countDoc(run, method.anchors) : 0, locale),
    layer: method.critical_layers.join(", ") || words.NONE,
    probe: words.seconds(method.parts_s.probe, locale), select: words.seconds(method.parts_s.select, locale),
    choosing: words.seconds(method.parts_s.probe + method.parts_s.select, locale),
    wait: words.seconds(stallTime(method), locale), loaded: words.bytes(method.loaded_bytes, locale),
    answer: words.shorten(method.answer, 90),
  };
}

// What a sentence may depend on.
export function conditionsOf(run) {
  const full = methodOf(run, "full"), conditions = {};
  for (const method of run.methods) {
    const set = (name, value) => { conditions[`${method.name}.${name}`] = value; };
    set("run", true);
    set("gold", method.quality.contains_gold === true);
    set("misses", method.quality.contains_gold === false);
    set("same", Boolean(full) && splitAtDifference(method.answer, full.answer).equal);
    set("differs", Boolean(full) && !splitAtDifference(method.answer, full.answer).equal);
    set("faster", Boolean(full) && method.ttft_s < full.ttft_s);
    set("anchors", Boolean(method.anchors));
    set("selective", isSelective(run, method));
  }
  for (const one of run.methods) {
    for (const other of run.methods) {
      conditions[`${one.name}.ttft<${other.name}.ttft`] = one.ttft_s < other.ttft_s;
      conditions[`${one.name}.kl<${other.name}.kl`] = one.quality.kl_to_full < other.quality.kl_to_full;
    }
  }
  return conditions;
}
