// The Evict view: bands of the cache, the request at the playhead, hit rates, the policies, who left and why, what was learned.
import { leaving, learnedOf, momentAt, points, rate, rateOf } from "../core/cache_facts.js";
import { methodOf } from "../core/decode.js";
import { count, percent, seconds } from "../core/words.js";
import { button, el, keyed, measured, write } from "./dom.js";
import { axisOf, drawQueues, drawPrompt, drawRates, drawWeights, promptHeight, requestAtX, weightsHeight } from "./evict_draw.js";
import { filmTables } from "./evict_tables.js";
import { foundOf, outcomeOf, paceOf, whatOf, whyOf } from "./evict_words.js";
import { penFor } from "./pen_canvas.js";
import { createChips, createTabs, createTransport, scrub } from "./transport.js";

const MOST = 8, RULED = ["lru", "min", "saecache", "sae_g", "lpc"];

export function createFilm({ dispatch, redraw }) {
  const panel = (name, ...rest) => el("section", { class: `fp-panel fp-${name}-panel` }, ...rest), title = () => el("h2", { class: "fp-title" });
  const head = (...nodes) => el("div", { class: "fp-panel-head" }, ...nodes), note = () => el("span", { class: "fp-note" });
  const bands = picture(redraw, "fp-map-frame", dispatch), rates = picture(redraw, "fp-time-frame", dispatch), prompt = picture(redraw), weights = picture(redraw);
  const heads = { bands: title(), request: title(), cards: title(), left: title(), learned: title() }, notes = { bands: note(), request: note(), learned: note() };
  const tabs = createTabs({ dispatch }), facts = el("dl", { class: "fp-facts" }), cards = el("div", { class: "fp-cards" }), victims = el("ul", { class: "fp-victims" });
  const transport = createTransport({ dispatch }), chips = createChips({ dispatch });
  const time = panel("time", el("div", { class: "fp-time-head" }, ...transport.nodes), rates.frame, chips.node);
  const node = el("div", { class: "fp-main fp-film" },
    el("div", { class: "fp-upper" }, panel("map", head(heads.bands, tabs.node, notes.bands), bands.frame), el("aside", { class: "fp-side" }, panel("request", head(heads.request), prompt.frame, notes.request, facts))),
    time, panel("answers", head(heads.cards), cards), el("div", { class: "fp-lower" }, panel("text", head(heads.left), victims), panel("fidelity", head(heads.learned, notes.learned), weights.frame)));
  const tables = el("div", { class: "fp-table-frame", tabindex: "0", role: "group" }), summary = el("summary", {}), fold = el("details", { class: "fp-panel fp-tables-panel" }, summary, tables);
  const drawTables = keyed(tables, filmTables);
  fold.addEventListener("toggle", redraw);
  const drawFacts = keyed(facts, requestLines), drawCards = keyed(cards, (model) => model.shown.map((one) => policyCard(model, one, dispatch))), drawVictims = keyed(victims, (model) => victimsOf(model, dispatch));

  return {
    node, tables: fold,
    update(model) {
      const { run, method, state, say, locale, shown, request, size } = model, at = count(request, locale), view = { run, t: state.time, request, say, locale, label: model.label, caption: state.present && `${model.label(method.name)} · ${say("bands_title")}` };
      const key = `${run.id} ${state.methods} ${method.name} ${say.lang} ${model.theme}`, here = `${key} ${request}`, moment = momentAt(method, request);
      const axis = (box) => axisOf(run, state.zoom, box.w, size), look = `${key} ${state.zoom} ${size}`;
      const texts = [[heads.bands, "bands_title"], [heads.cards, "rate_title"], [heads.left, "victims_title"], [heads.learned, "learned_title"], [notes.request, "prompt_note"], [summary, "tables_title"]];
      for (const [node, name] of texts) write(node, say(name));
      write(heads.request, say("request_of", { request: at, last: count(run.num_tokens - 1, locale) }));
      write(notes.bands, moment < 0 ? "" : say("moment_note", { request: count(method.snapshots.request[moment], locale) }));
      tabs.update(model);
      drawFacts(here, model);
      drawCards(here, model);
      cards.style.setProperty("--fp-num-cards", String(shown.length));
      drawVictims(`${here} ${state.present}`, model);
      if (fold.open) drawTables(here, model);
      tables.setAttribute("aria-label", say("tables_title"));
      chips.update(model);
      transport.update(model, (speed) => paceOf(model, speed));
      bands.draw(look, axis, 0, (pen, axis, h) => drawQueues(pen, run, method, axis, h, view, model.colors), say("bands_label", { method: model.label(method.name), request: at }), request);
      rates.draw(look, axis, state.present ? Math.min(size * 14, window.innerHeight * 0.32) : size * 17, (pen, axis, h) => drawRates(pen, run, shown, method, axis, h, view, model.colors), shown.map((one) => `${model.label(one.name)} ${rate(rateOf(run, one, request), locale)}`).join(", "), request, run.num_tokens - 1);
      prompt.draw(key, axis, promptHeight(shown, size), (pen, { w }) => drawPrompt(pen, run, shown, method, w, view, model.colors, size), `${say("request_of", { request: at, last: count(run.num_tokens - 1, locale) })}: ${say("found_of", foundOf(model, method))}`);
      const learns = method.weight_names.length > 0 && moment >= 0;
      write(notes.learned, learns ? "" : say("learned_none"));
      weights.frame.hidden = !learns;
      // In a talk the letters are as large as all groups allow.
      const letters = state.present ? Math.min(size, Math.max(11, (node.clientHeight - time.offsetHeight - 24) / weightsHeight(method, 1))) : size;
      if (learns) weights.draw(`${look} ${letters}`, (box) => ({ ...axis(box), size: letters }), weightsHeight(method, letters), (pen, axis) => drawWeights(pen, method, axis, view, model.colors), say("learned_title"));
    },
  };
}

// A canvas that is as high as its picture needs, or its frame where no height is given; with `dispatch` one can scrub on it.
function picture(redraw, className = "", dispatch = null) {
  const canvas = el("canvas", { class: `fp-canvas${dispatch ? " fp-timeline" : ""}`, role: dispatch ? "slider" : "img", tabindex: dispatch && "0", "aria-valuemin": dispatch && "0" }), frame = el("div", { class: `fp-frame ${className}` }, canvas), box = measured(frame, redraw);
  let sprites = new Map(), last = "", axis = null;
  if (dispatch) scrub(canvas, dispatch, (x) => axis && requestAtX(axis, x));
  return {
    frame,
    draw(key, axisFor, height, paint, label, now, most) {
      if (height) frame.style.height = `${Math.ceil(height)}px`;
      const h = height ? Math.ceil(height) : box.h, whole = `${key} ${box.w} ${h}`;
      if (box.w < 40 || h < 40) return;
      if (whole !== last) { last = whole; sprites = new Map(); axis = axisFor(box); }
      paint(penFor(canvas, box.w, h, sprites), axis, h);
      canvas.setAttribute("aria-label", label);
      if (now !== undefined) for (const [name, value] of [["now", now], ["max", most ?? axis.last], ["text", label]]) canvas.setAttribute(`aria-value${name}`, String(value));
    },
  };
}

function requestLines({ run, method, request, say, locale }) {
  const log = method.requests, lines = [
    ["f_prompt", say("f_tokens", { tokens: count(run.requests.prompt_tokens[request], locale), found: count(log.hit_tokens[request], locale) })], ["f_session", String(run.requests.session[request])], ["f_came", seconds(run.requests.time_s[request] - run.requests.time_s[0], locale)],
    ["f_inserted", count(log.num_inserted[request], locale)], ["f_left", count(method.starts[request + 1] - method.starts[request], locale)], ["col_ttft", seconds(log.ttft_s[request], locale)],
  ];
  return lines.flatMap(([key, value]) => [el("dt", { text: say(key) }), el("dd", { text: value })]);
}

function policyCard(model, one, dispatch) {
  const { run, method, request, say, label, colors, locale } = model, own = rateOf(run, one, request), lru = methodOf(run, "lru"), left = one.starts[request + 1], wrong = one.regret_sums[request + 1];
  const lines = [lru && one !== lru && say("over_lru", { points: points(own - rateOf(run, lru, request), locale) }), request > run.num_tokens >> 1 && say("since_half", { rate: rate(rateOf(run, one, request, run.num_tokens >> 1), locale) }), say(run.limit_sums ? "left_regretted" : "left_so_far", { count: count(left, locale), regretted: count(wrong, locale), share: percent(wrong / Math.max(1, left), locale) }), say("this_request", foundOf(model, one))];
  return el("article", { class: `fp-card${one === method ? " fp-current" : ""}`, style: { "--method": colors.methods[one.name] } },
    el("div", { class: "fp-card-head" }, el("button", { type: "button", class: "fp-card-name", text: label(one.name), on: { click: () => dispatch({ type: "method", method: one.name }) } }), el("span", { class: "fp-card-time", text: rate(own, locale) })),
    ...lines.filter(Boolean).map((text) => el("p", { class: "fp-card-verdict", text })));
}

// Who left during the request: what they were, on what evidence, and what came of it.
function victimsOf(model, dispatch) {
  const { run, method, request, say, locale } = model, groups = leaving(method, request), most = model.state.present ? Math.max(2, Math.floor((window.innerHeight - 440) / 130)) : MOST, rest = groups.slice(most);
  const lead = RULED.includes(method.name) && el("li", { class: "fp-rule", text: `${model.label(method.name)}: ${say(`rule_${method.name}`)}` });
  if (!groups.length) return [lead, el("li", { text: say("victims_none") })];
  return [lead, ...groups.slice(0, most).map((group) => {
    return el("li", { class: group.regret ? "fp-wrong" : "" }, el("b", { text: whatOf(model, group) }), el("span", { class: "fp-muted", text: ` ${whyOf(model, group, learnedOf(method, request, group))}` }), el("br"), el("span", { text: `${group.regret ? "✗" : group.suffered < 0 ? "✓" : "○"} ${outcomeOf(model, group)} ` }),
      group.suffered >= 0 && button("→", () => dispatch({ type: "seek", time: group.suffered }), { "aria-label": say("go_request", { request: count(group.suffered, locale) }) }));
  }), rest.length > 0 && el("li", { class: "fp-rule", text: say("victims_more", { count: count(rest.reduce((sum, { num }) => sum + num, 0), locale) }) })];
}
