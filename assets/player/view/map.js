// The map on screen: canvas, pointer, keys. Tells what is pointed at; knows nothing of how anything is drawn.
import { selectionEnd } from "../core/clock.js";
import { spanOf } from "../core/phases.js";
import { count, shorten, tokenLabel } from "../core/words.js";
import { drawMap, layerAt, mapIn, positionAt } from "./draw_map.js";
import { arrows, el, keyed, measured, write } from "./dom.js";
import { penFor } from "./pen_canvas.js";
import { createTabs } from "./transport.js";

const LEGEND = ["recomputed", "loaded", "exact", "system", "question", "anchor", "answer"];

export function createMap({ dispatch, hover, redraw }) {
  const canvas = el("canvas", { class: "fp-canvas fp-map", tabindex: "0", role: "application" });
  const frame = el("div", { class: "fp-frame fp-map-frame" }, canvas);
  const tabs = createTabs({ dispatch }), note = el("span", { class: "fp-note" }), legend = el("ul", { class: "fp-legend" });
  const title = el("h2", { class: "fp-title" }), line = el("p", { class: "fp-token-line" }), flipped = el("p", { class: "fp-flip" });
  const node = el("section", { class: "fp-panel fp-map-panel" }, el("div", { class: "fp-panel-head" }, title, tabs.node, note), frame, line, flipped, legend);
  const box = measured(frame, redraw);
  let seen = null, sprites = new Map(), lastKey = "";

  const at = (event) => seen && positionAt(seen.scene, seen.geo, event.offsetX);
  canvas.addEventListener("pointermove", (event) => {
    const position = at(event);
    if (event.buttons && seen.drag !== undefined && position !== null && seen.zoomed) dispatch({ type: "pan", by: (seen.drag - event.offsetX) / seen.geo.width });
    if (event.buttons) seen.drag = event.offsetX;
    hover(position);
  });
  canvas.addEventListener("pointerdown", (event) => { if (seen) { seen.drag = event.offsetX; seen.down = event.offsetX; } });
  canvas.addEventListener("pointerup", (event) => { if (seen && Math.abs(event.offsetX - seen.down) < 4) dispatch({ type: "pick", token: at(event), layer: layerAt(seen.scene, seen.geo, event.offsetY) }); });
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("wheel", (event) => {
    const position = at(event);
    if (position === null || !(event.ctrlKey || event.altKey || seen.zoomed)) return;
    event.preventDefault();
    dispatch({ type: "zoom", factor: event.deltaY > 0 ? 1.25 : 0.8, at: position });
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => at(event) !== null && dispatch({ type: "zoom", factor: 0.4, at: at(event) }));
  const move = (by) => ({ type: "moveToken", by }), layer = (by) => ({ type: "moveLayer", by });
  arrows(canvas, { ArrowRight: move(1), ArrowLeft: move(-1), ArrowDown: layer(1), ArrowUp: layer(-1) }, (action, { shiftKey }) => dispatch({ ...action, by: action.by * (shiftKey && action.type === "moveToken" ? 25 : 1) }));

  const drawLegend = keyed(legend, (say, kinds) => kinds.map((kind) => el("li", {}, el("span", { class: `fp-swatch fp-swatch-${kind}` }), el("span", { text: say(`state_${kind}`) }))));

  function update(model, token) {
    const { run, method, state, say, label, size, flip } = model;
    const { w, h } = box;
    tabs.update(model);
    write(title, say("map_title"));
    flipped.hidden = !flip;
    write(flipped, flipWords(model));
    if (w < 40 || h < 40) return;
    const key = `${run.id} ${method.name} ${state.ratio} ${state.zoom} ${Boolean(flip)} ${w} ${h} ${size} ${model.theme} ${say.lang}`;
    if (key !== lastKey) {
      lastKey = key;
      sprites = new Map();
      seen = { ...mapIn(w, h, size, model), zoomed: state.zoom !== null };
      const { scene } = seen, kinds = LEGEND.filter((kind) => (kind === "anchor" ? scene.anchors.length : kind === "answer" ? run.answer_spans.length : ["exact", "loaded"].includes(kind) ? method.name !== "full" : true));
      drawLegend(`${kinds} ${say.lang}`, say, kinds);
      canvas.setAttribute("aria-label", say("map_label", { method: label(method.name), question: run.question.slice(0, 200) }));
    }
    paintMap(penFor(canvas, w, h, sprites), seen, model, token);
    write(note, noteOf(model));
    write(line, token === null ? "" : lineOf(model, token));
  }
  return { node, update };
}

// The map as it is on screen and in a file. `seen`: what mapIn returns.
export const paintMap = (pen, { scene, geo }, model, token) => drawMap(pen, scene, geo, momentOf(model), { token, layer: model.state.layer, total: model.run.num_tokens, text: (p) => model.run.tokens[p], say: model.say, count: (value) => count(value, model.locale) }, model.colors);

// What is said of a second question, "" without one.
export function flipWords({ flip, say, locale }) {
  const [a, both, b] = flip ? flip.counts.map((tokens) => count(tokens, locale)) : [];
  return flip ? say("flip_line", { question: shorten(flip.question, 160), a, both, b }) : "";
}

// What the map needs to know of the time: done layers, when the choice was made, whether the question is being probed.
function momentOf({ method, state, times }) {
  const select = spanOf(method, "select"), probe = spanOf(method, "probe"), chosen = selectionEnd(method);
  // A selection that reads layers is long, so scores grow while it lasts; a short one lets them appear within the probe's last part.
  const choose = method.scores ? [select ? select.start_s : chosen, chosen] : null;
  return { t: state.time, times, choose, probing: Boolean(probe) && state.time > 0 && state.time < chosen, beforeAll: state.time <= 0 };
}

function noteOf({ run, state, method, say, locale }) {
  const parts = [];
  if (state.zoom) parts.push(say("zoomed", { from: count(state.zoom[0], locale), to: count(state.zoom[1] - 1, locale) }));
  else parts.push(say("zoom_hint"));
  if (method.layer_rows && method.layer_rows.some((rows) => rows >= run.num_tokens)) parts.push(say("whole_layers"));
  return parts.join(" · ");
}

const lineOf = ({ run, facts, say, locale }, token) => {
  const label = `“${tokenLabel(run.tokens[token], 30)}”`;
  const fact = facts(token);
  return fact.rank === null ? `${label} · ${say(`part_${fact.part}`)}` : `${label} · ${say("rank_of", { rank: count(fact.rank, locale), total: count(run.num_doc, locale) })} · ${say("chosen_by", { count: String(fact.rivals.filter((r) => r.chose).length), total: String(fact.rivals.length) })}`;
};
