// The pictures as tables, for people who read instead of look.
import { stallTime } from "../core/clock.js";
import { countDoc, unranked } from "../core/budget.js";
import { methodOf } from "../core/decode.js";
import { topTokens } from "../core/tokens.js";
import * as words from "../core/words.js";
import { bdi, el, keyed } from "./dom.js";

const TOP = 20;

export function createTables() {
  const methods = el("div", { class: "fp-table-frame", tabindex: "0", role: "group" }), tokens = el("div", { class: "fp-table-frame", tabindex: "0", role: "group" });
  const summary = el("summary", {}), node = el("details", { class: "fp-panel fp-tables-panel" }, summary, methods, tokens);
  const drawMethods = keyed(methods, methodTable), drawTokens = keyed(tokens, tokenTable);
  return {
    node,
    update(model) {
      const { run, method, state, say } = model;
      if (summary.textContent !== say("tables_title")) summary.textContent = say("tables_title");
      methods.setAttribute("aria-label", say("table_methods"));
      tokens.setAttribute("aria-label", say("table_tokens", { count: String(TOP) }));
      drawMethods(`${run.id} ${say.lang}`, model);
      drawTokens(`${run.id} ${method.name} ${state.ratio} ${say.lang}`, model);
    },
  };
}

export const table = (caption, heads, rows) => el("table", { class: "fp-table" }, el("caption", { text: caption }),
  el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col", text: head })))),
  el("tbody", {}, ...rows.map(([first, ...rest]) => el("tr", {}, el("th", { scope: "row" }, first), ...rest.map((cell) => el("td", {}, cell))))));

function methodTable({ run, say, label, locale }) {
  const full = methodOf(run, "full"), s = (value) => words.seconds(value, locale);
  const heads = ["col_method", "col_recomputed", "col_ttft", "col_range", "col_times", "phase_probe", "phase_select", "col_wait", "col_read", "col_kl", "col_answer"].map((key) => say(key));
  const rows = run.methods.map((m) => [
    label(m.name), words.count(countDoc(run, m.rows), locale), s(m.ttft_s), `${s(Math.min(...m.ttft_repeats_s))} – ${s(Math.max(...m.ttft_repeats_s))} (${m.ttft_repeats_s.length})`,
    full ? words.times(full.ttft_s / m.ttft_s, locale) : words.NONE, s(m.parts_s.probe), s(m.parts_s.select), s(stallTime(m)), words.bytes(m.loaded_bytes, locale), words.decimals(m.quality.kl_to_full ?? NaN, 3, locale), bdi(words.shorten(m.answer, 160)),
  ]);
  return table(say("table_methods"), heads, rows);
}

function tokenTable({ run, method, state, say, locale, label }) {
  const rows = topTokens(run, method, state.ratio, TOP).map((fact) => [
    words.count(fact.rank, locale), bdi(words.tokenLabel(fact.text, 30)), words.count(fact.position, locale), fact.chunk ? bdi(`${fact.chunk.number} ${words.shorten(fact.chunk.title, 60)}`) : words.NONE,
    fact.score === null ? words.NONE : words.scientific(fact.score), fact.recomputed ? say("state_recomputed") : say("state_loaded"), fact.rivals.filter((rival) => rival.chose && rival.name !== method.name).map((rival) => label(rival.name)).join(", ") || words.NONE,
  ]);
  if (!rows.length) return el("p", { class: "fp-muted", text: say(unranked(run, method), { method: label(method.name) }) });
  return table(say("table_tokens", { count: String(TOP) }), ["col_rank", "col_token", "token_position", "token_chunk", "token_score", "token_state", "col_rivals"].map((key) => say(key)), rows);
}
