// Beside the map: why this token, and the budget.
import { countDoc, isMeasured, rowsAt, timeAt, unranked } from "../core/budget.js";
import { bestWord } from "../core/tokens.js";
import { NONE, count, percent, scientific, seconds, shorten, tokenLabel } from "../core/words.js";
import { bdi, button, el, keyed, measured, write } from "./dom.js";
import { penFor } from "./pen_canvas.js";

export function createToken() {
  const title = el("h2", { class: "fp-title" }), hint = el("p", { class: "fp-note" }), body = el("div", { class: "fp-token-card" });
  const node = el("section", { class: "fp-panel fp-token-panel", "aria-live": "polite", tabindex: "0" }, title, hint, body);
  const draw = keyed(body, (model, token) => (token === null ? [] : cardOf(model, model.facts(token))));
  return {
    node,
    update(model, token) {
      // Nobody has pointed at anything yet: the best word stands in, and says so.
      const shown = token ?? bestWord(model.run, model.method);
      write(title, model.say(token === null && shown !== null ? "token_best" : "token_title"));
      write(hint, token === null ? model.say("token_hint") : "");
      hint.hidden = token !== null;
      draw(`${model.run.id} ${model.method.name} ${model.state.ratio} ${shown} ${model.state.layer} ${model.say.lang} ${model.theme}`, model, shown);
    },
  };
}

// When the layer pointed at was read and computed.
function layerWords({ state, times, say, locale }) {
  const { layer } = state, stretch = (from, to) => (Number.isFinite(from[layer]) ? `${seconds(from[layer], locale)} – ${seconds(to[layer], locale)}` : NONE);
  return say("layer_times", { layer: String(layer), read: stretch(times.readStart, times.read), computed: stretch(times.start, times.done) });
}

function cardOf(model, fact) {
  const { run, say, label, colors, locale, method } = model;
  const state = fact.part !== "document" ? say(`part_${fact.part}`) : fact.recomputed ? say("state_recomputed") : say("state_loaded");
  const lines = [["token_state", state], ["token_position", count(fact.position, locale)]];
  if (fact.chunk) lines.push(["token_chunk", `${fact.chunk.number} ${shorten(fact.chunk.title, 40)}`]);
  if (fact.score !== null) lines.push(["token_score", scientific(fact.score)]);
  const flags = [fact.anchor && say("state_anchor"), fact.answer && say("state_answer")].filter(Boolean);
  if (flags.length) lines.push(["token_marks", flags.join(", ")]);
  if (model.state.layer !== null) lines.push(["layer", layerWords(model)]);
  const table = el("dl", { class: "fp-facts" }, ...lines.flatMap(([key, value]) => [el("dt", { text: say(key) }), el("dd", {}, bdi(value))]));
  return [bdi(tokenLabel(fact.text, 28), "fp-token-text"), fact.rank !== null && rankBar(fact, run, say, locale), table,
    fact.rivals.length > 0 && el("h3", { class: "fp-subtitle", text: say("rivals_title", { count: String(fact.rivals.filter((r) => r.chose).length), total: String(fact.rivals.length) }) }),
    fact.rivals.length > 0 && el("ul", { class: "fp-rivals" }, ...fact.rivals.map((rival) => el("li", { class: `${rival.chose ? "fp-chose" : ""}${rival.name === method.name ? " fp-current" : ""}`, style: { "--method": colors.methods[rival.name] } },
      el("span", { class: "fp-mark", text: rival.chose ? "✓" : "✗" }), el("span", { class: "fp-rival-name", text: label(rival.name) }), el("span", { class: "fp-rival-rank", text: rival.rank === null ? "" : `#${count(rival.rank, locale)}` }))))];
}

// Rank 1 is left; the filled part is what the budget takes.
function rankBar(fact, run, say, locale) {
  const at = (rank) => `${((rank - 0.5) / run.num_doc) * 100}%`;
  return el("div", { class: "fp-rank" },
    el("p", { class: "fp-rank-words" }, el("strong", { text: say("rank_of", { rank: count(fact.rank, locale), total: count(run.num_doc, locale) }) }), el("span", { text: ` · ${say("cut_at", { rank: count(fact.cut, locale) })}` })),
    el("div", { class: "fp-rank-bar", "aria-hidden": "true" }, el("span", { class: "fp-rank-taken", style: { width: `${(fact.cut / run.num_doc) * 100}%` } }), el("span", { class: "fp-rank-here", style: { left: at(fact.rank) } })));
}

export function createBudget({ dispatch, times, redraw }) {
  const title = el("h2", { class: "fp-title" }), slider = el("input", { type: "range", min: "0", max: "1", step: "0.01", class: "fp-slider" });
  const exact = el("p", { class: "fp-budget-exact" }), timed = el("p", { class: "fp-budget-time" }), canvas = el("canvas", { class: "fp-canvas", role: "img" });
  const frame = el("div", { class: "fp-frame fp-budget-frame" }, canvas), back = button("", () => dispatch({ type: "measuredRatio" }), { class: "fp-button fp-back" });
  const node = el("section", { class: "fp-panel fp-budget-panel" }, el("div", { class: "fp-panel-head" }, title, back), slider, exact, frame, timed);
  const box = measured(frame, redraw);
  let lastKey = "";
  slider.addEventListener("input", () => dispatch({ type: "ratio", ratio: Number(slider.value) }));
  return {
    node,
    update(model) {
      const { run, method, state, say, locale } = model, { w } = box, key = `${run.id} ${method.name} ${state.ratio} ${w} ${box.h} ${model.size} ${model.theme} ${say.lang}`;
      if (key === lastKey) return;
      lastKey = key;
      const asRun = isMeasured(run, state.ratio), points = pointsOf(times(), model);
      write(title, say("budget_title"));
      if (Number(slider.value) !== state.ratio) slider.value = String(state.ratio);
      slider.disabled = !method.ranking;
      slider.setAttribute("aria-label", say("budget_title"));
      slider.setAttribute("aria-valuetext", percent(state.ratio, locale));
      write(back, say("budget_back", { ratio: percent(run.ratio, locale) }));
      back.hidden = asRun;
      const values = { ratio: percent(state.ratio, locale), count: count(countDoc(run, rowsAt(run, method, state.ratio)), locale), doc: count(run.num_doc, locale) };
      write(exact, method.ranking ? say("budget_exact", values) : say(unranked(model.run, method), { method: model.label(method.name) }));
      write(timed, timeWords(model, points, asRun));
      frame.hidden = points.length < 2 || !method.ranking;
      if (!frame.hidden && w > 40) drawPoints(penFor(canvas, w, box.h), w, box.h, points, model);
      canvas.setAttribute("aria-label", `${say("budget_times")} ${points.map(([r, s]) => `${percent(r, locale)}: ${seconds(s, locale)}`).join(", ")}`);
    },
  };
}

// Points of a benchmark on the same machine and model, where there is one; a run alone has a single ratio.
const pointsOf = (times, { method }) => (times && times.points[method.name]) || [];

function timeWords({ run, method, state, say, locale }, points, measured) {
  const own = say("time_here", { ttft: seconds(method.ttft_s, locale), ratio: percent(run.ratio, locale), n: String(method.ttft_repeats_s.length) });
  if (!method.ranking || measured) return own;
  const found = timeAt(points, state.ratio);
  if (!found) return `${own} ${say("time_unknown", { ratio: percent(state.ratio, locale) })}`;
  return `${own} ${say(found.measured ? "time_measured" : "time_between", { ttft: seconds(found.seconds, locale), ratio: percent(state.ratio, locale) })}`;
}

function drawPoints(pen, w, h, points, { run, method, state, say, colors, size, locale }) {
  const own = [run.ratio, method.ttft_s], top = Math.max(own[1], ...points.map(([, s]) => s)) * 1.2, left = size * 3.4, low = h - size * 1.5, small = size * 0.86;
  const x = (r) => left + r * (w - left - size * 1.2), y = (s) => low - (s / top) * (low - size * 0.8);
  pen.line(left, low, w - size * 0.6, low, colors.muted, 1);
  for (const r of [0, 0.5, 1]) pen.text(percent(r, locale), r < 1 ? x(r) : w, h - size * 0.7, { size: small, color: colors.muted, align: r < 1 ? "center" : "right" });
  for (let i = 1; i < points.length; i++) pen.line(x(points[i - 1][0]), y(points[i - 1][1]), x(points[i][0]), y(points[i][1]), colors.muted, 2, [4, 4]);
  for (const [r, s] of points) {
    pen.shape(ring(x(r), y(s), size * 0.36), colors.ink);
    pen.shape(ring(x(r), y(s), size * 0.22), colors.panel);
  }
  const r = size * 0.4;
  pen.shape([[x(own[0]), y(own[1]) - r], [x(own[0]) + r, y(own[1])], [x(own[0]), y(own[1]) + r], [x(own[0]) - r, y(own[1])]], colors.recomputed);
  pen.line(x(state.ratio), size * 0.4, x(state.ratio), low, colors.ink, 1.5);
  pen.text(seconds(top / 1.2, locale), left - size * 0.4, y(top / 1.2), { size: small, color: colors.muted, align: "right" });
  pen.text("0", left - size * 0.4, low, { size: small, color: colors.muted, align: "right" });
  const label = say("points_of"), look = { size: small, color: colors.muted, align: "right", halo: colors.panel };
  if (pen.width(label, look) < w - left) pen.text(label, w - size * 0.6, size * 0.6, look);
}

const ring = (x, y, r) => Array.from({ length: 16 }, (_, i) => [x + Math.cos((i * Math.PI) / 8) * r, y + Math.sin((i * Math.PI) / 8) * r]);
