// Top line and headline: where the numbers come from, which question, what came out of it.
import { isMeasured, isSelective, rowsAt, countDoc } from "../core/budget.js";
import { filmVerdict, requestAt } from "../core/cache_facts.js";
import { splitAtDifference } from "../core/diff.js";
import { methodOf } from "../core/decode.js";
import * as words from "../core/words.js";
import { bdi, button, el, keyed, write } from "./dom.js";

const BADGES = { live: "LIVE", replay: "REPLAY", simulated: "SIMULATED", sglang: "SGLang" };

export function badge(mode) {
  return el("span", { class: `fp-badge fp-badge-${mode}`, text: BADGES[mode] || String(mode).toUpperCase() });
}

const tabOf = (entry) => entry.tab || "fuse";

export function createTop({ dispatch, runs, languages, openMeasured }) {
  const source = el("button", { type: "button", class: "fp-source", on: { click: openMeasured } });
  const reason = el("p", { class: "fp-reason", role: "status" });
  const runBox = el("span", { class: "fp-top-run" }), tools = el("span", { class: "fp-tools" });
  const node = el("header", { class: "fp-top" }, el("strong", { class: "fp-brand", text: "Fusescope" }), source, runBox, tools, reason);
  const drawSource = keyed(source, (run, words, say, offline) => [badge(run.provenance.mode), run.provenance.versions?.sglang && badge("sglang"), offline && badge("offline"), el("span", { class: "fp-source-words", text: ` ${words}`, title: words }), el("span", { class: "fp-source-how", text: say("how_measured") })]);
  const tabs = [...new Set(runs.map(tabOf))];
  const drawRuns = keyed(runBox, (state, say) => {
    if (runs.length < 2) return [];
    const list = runs.filter((entry) => tabOf(entry) === state.tab);
    const select = el("select", { class: "fp-select", "aria-label": say(`pick_${state.tab}`), on: { change: (event) => dispatch({ type: "load", scenario: event.target.value }) } });
    select.append(...list.map(({ id, title }) => el("option", { value: id, text: title[say.lang] ?? title.en ?? title, selected: id === state.scenario })));
    return [tabs.length > 1 && el("span", { class: "fp-tabs", role: "group", "aria-label": say("tabs") }, ...tabs.map((tab) => el("button", {
      type: "button", class: "fp-tab", "aria-pressed": String(tab === state.tab), text: say(`tab_${tab}`), on: { click: () => tab !== state.tab && dispatch({ type: "load", scenario: runs.find((entry) => tabOf(entry) === tab).id }) },
    }))), select];
  });
  const drawTools = keyed(tools, (dark, say) => {
    const lang = el("select", { class: "fp-select", "aria-label": say("language"), on: { change: (event) => dispatch({ type: "lang", lang: event.target.value }) } });
    lang.append(...languages.map((code) => el("option", { value: code, text: code.toUpperCase(), selected: code === say.lang })));
    return [
      button(say("tour"), () => dispatch({ type: "tour" }), { class: "fp-button fp-primary" }),
      button(say("present"), () => dispatch({ type: "present" })),
      button(say(dark ? "light" : "dark"), () => dispatch({ type: "theme", theme: dark ? "light" : "dark" })),
      lang,
      button("?", () => dispatch({ type: "help" }), { "aria-label": say("help") }),
    ];
  });
  return {
    node,
    update({ run, state, say, why, dark, offline, source: words }) {
      drawSource(`${run.id} ${say.lang} ${offline}`, run, words, say, offline);
      drawRuns(`${state.tab} ${state.scenario} ${say.lang}`, state, say);
      drawTools(`${dark} ${say.lang}`, dark, say);
      write(reason, why || "");
      reason.hidden = !why;
    },
  };
}

export function createHeadline() {
  const intro = el("p", { class: "fp-intro" }), question = el("h1", { class: "fp-question" }), verdict = el("p", { class: "fp-verdict" });
  const node = el("div", { class: "fp-headline" }, intro, question, verdict);
  const drawQuestion = keyed(question, (title) => bdi(words.shorten(title, 400)));
  return {
    node,
    update(model) {
      const { run, say, locale } = model;
      write(intro, say(run.tab ? "intro_evict" : "intro_fuse", { chunks: words.count((run.chunks || []).length, locale), requests: words.count(run.num_tokens, locale) }));
      drawQuestion(`${run.id} ${model.title}`, model.title);
      write(verdict, model.verdict);
    },
  };
}

// One sentence: what the method looked at did, at which price. Everything in it is measured, or says that it isn't.
export function verdictOf({ run, method, state, say, locale, label }) {
  if (run.tab) return filmVerdict(run, method, requestAt(run, state.time), say, locale, label);
  const full = methodOf(run, "full"), doc = words.count(run.num_doc, locale), name = label(method.name);
  if (method.name === "full") return say("verdict_full", { method: name, doc, ttft: words.seconds(method.ttft_s, locale) });
  if (!isMeasured(run, state.ratio) && method.ranking) {
    return say("verdict_preview", { method: name, ratio: words.percent(state.ratio, locale), count: words.count(countDoc(run, rowsAt(run, method, state.ratio)), locale), doc, run: words.percent(run.ratio, locale) });
  }
  const parts = { method: name, doc, ttft: words.seconds(method.ttft_s, locale), share: words.percent(countDoc(run, method.rows) / run.num_doc, locale) };
  const did = say(isSelective(run, method) ? "verdict_selective" : "verdict_reuse", parts);
  if (!full) return did.replace(/[,，]$/u, say("full_stop"));
  const pace = full.ttft_s / method.ttft_s, values = { full: words.seconds(full.ttft_s, locale), times: words.times(pace >= 1 ? pace : 1 / pace, locale) };
  return `${did} ${say(Math.abs(pace - 1) < 0.05 ? "verdict_even" : pace >= 1 ? "verdict_sooner" : "verdict_later", values)} ${say(answerWord(method, full))}`;
}

function answerWord(method, full) {
  const same = splitAtDifference(method.answer, full.answer).equal, { contains_gold: own } = method.quality, { contains_gold: theirs } = full.quality;
  if (same) return "answer_same";
  if (own === true) return "answer_right";
  return theirs === true ? "answer_lost" : "answer_other";
}
