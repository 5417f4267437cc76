// What lies over the picture for a moment: the keys, and how the numbers were measured.
import { HELP } from "../core/keys.js";
import { bytes, count, percent } from "../core/words.js";
import { bdi, button, el } from "./dom.js";
import { filmMeasured } from "./evict_tables.js";

export function createOverlays({ dispatch }) {
  const help = layer("help"), measured = layer("measured");
  let open = false, helpKey = "", measuredKey = "";
  const close = () => { open = false; measured.hidden = true; };
  return {
    nodes: [help, measured],
    openMeasured() { open = true; measured.hidden = false; measured.querySelector("button").focus(); },
    close,
    isOpen: () => open,
    update({ run, state, say, locale }) {
      if (helpKey !== say.lang) { helpKey = say.lang; fillHelp(help, say, () => dispatch({ type: "help" })); }
      if (measuredKey !== run.id + say.lang) { measuredKey = run.id + say.lang; fillMeasured(measured, run, say, locale, close); }
      if (help.hidden === state.help) {
        help.hidden = !state.help;
        if (state.help) help.querySelector("button").focus();
      }
    },
  };
}

const layer = (name) => el("div", { class: `fp-overlay fp-overlay-${name}`, role: "dialog", hidden: true });

function box(node, title, close, say, ...children) {
  node.setAttribute("aria-label", title);
  node.replaceChildren(el("div", { class: "fp-box" }, el("div", { class: "fp-panel-head" }, el("h2", { class: "fp-title", text: title }), button(say("close"), close)), ...children));
}

function fillHelp(node, say, close) {
  const rows = HELP.flatMap(([keys, name]) => [el("dt", {}, el("kbd", { text: keys })), el("dd", { text: say(name) })]);
  box(node, say("help"), close, say, el("dl", { class: "fp-keys" }, ...rows));
}

function fillMeasured(node, run, say, locale, close) {
  const p = run.provenance, line = (key, value) => [el("dt", { text: say(key) }), el("dd", {}, bdi(String(value)))];
  if (run.tab) {
    box(node, say("how_measured"), close, say, el("p", { text: say(`film_${p.mode}`) }), el("dl", { class: "fp-facts" }, ...filmMeasured(run, say, locale).flatMap(([key, value]) => line(key, value))), ...run.notes.map((note) => el("p", { class: "fp-notice" }, bdi(note))));
    return;
  }
  const repeats = Math.max(...run.methods.map((method) => method.ttft_repeats_s.length), 0);
  box(node, say("how_measured"), close, say,
    el("p", { text: say(`mode_${p.mode}`) }),
    el("dl", { class: "fp-facts" },
      ...line("m_model", `${p.model} (${p.revision.slice(0, 12)})`), ...line("m_weights", `${p.weights}, ${p.dtype}`), ...line("m_device", `${p.device}, ${say("m_threads", { count: String(p.num_threads) })}`),
      ...line("m_when", `${p.created}, ${p.commit}`), ...line("m_kernels", p.kernels), ...line("m_disk", p.disk_mb_per_s === null ? "–" : `${bytes(p.disk_mb_per_s * 1e6, locale)}/s, ${p.page_cache}`),
      ...line("m_prompt", say("m_prompt_words", { tokens: count(run.num_tokens, locale), doc: count(run.num_doc, locale), chunks: String(run.chunks.length), ratio: percent(run.ratio, locale) })),
      ...line("m_times", say("m_times_words", { n: String(repeats) })), ...line("m_answer", say("m_answer_words", { seed: String(run.seed), temperature: String(run.temperature) })), ...line("m_versions", Object.entries(p.versions).map(([name, version]) => `${name} ${version}`).join(", "))),
    ...run.notices.map((notice) => el("p", { class: "fp-notice" }, bdi(notice))));
}
