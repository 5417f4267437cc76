// The view as one picture for a file: question, headline, map, timeline, and where the numbers come from. Written once for both pens.
import { timeScene } from "../core/time_scene.js";
import { count } from "../core/words.js";
import { drawMap, mapIn } from "./draw_map.js";
import { drawTimeline, timelineGeometry } from "./draw_timeline.js";
import { axisOf, drawQueues, drawRates } from "./evict_draw.js";
import { fit } from "./fit.js";
import { momentOf } from "./map.js";

const WIDTH = 1600, SIZE = 17, EDGE = 40, MAP = 560;

// A pen whose origin is moved.
const shifted = (pen, dx, dy) => ({
  rect: (x, y, ...rest) => pen.rect(x + dx, y + dy, ...rest), hatch: (x, y, ...rest) => pen.hatch(x + dx, y + dy, ...rest), frame: (x, y, ...rest) => pen.frame(x + dx, y + dy, ...rest),
  line: (x1, y1, x2, y2, ...rest) => pen.line(x1 + dx, y1 + dy, x2 + dx, y2 + dy, ...rest), shape: (points, ...rest) => pen.shape(points.map(([x, y]) => [x + dx, y + dy]), ...rest), path: (points, ...rest) => pen.path(points.map(([x, y]) => [x + dx, y + dy]), ...rest),
  text: (text, x, y, look) => pen.text(text, x + dx, y + dy, look), width: pen.width, stamp: (key, x, y, ...rest) => pen.stamp(key, x + dx, y + dy, ...rest),
});

export function posterPlan(model) {
  if (model.run.tab) return { width: WIDTH, height: 1010, inner: WIDTH - 2 * EDGE, top: EDGE + SIZE * 4.6 };
  const inner = WIDTH - 2 * EDGE, lanes = timelineGeometry(timeScene(model.run, model.state.methods), inner, SIZE), top = EDGE + SIZE * 4.6;
  return { width: WIDTH, height: Math.ceil(top + MAP + 24 + lanes.h + SIZE * 3 + EDGE / 2), inner, lanes, top };
}

export function drawPoster(pen, plan, model, token) {
  const { run, method, state, say, colors, label, locale } = model, { top, inner } = plan;
  pen.text(fit(pen, model.title, { size: SIZE * 1.7, bold: true }, inner), EDGE, EDGE + SIZE * 0.6, { size: SIZE * 1.7, bold: true, color: colors.ink });
  pen.text(fit(pen, model.verdict, { size: SIZE * 1.15 }, inner), EDGE, EDGE + SIZE * 2.7, { size: SIZE * 1.15, color: colors.muted });
  if (run.tab) {
    const axis = axisOf(run, state.zoom, inner, SIZE), view = { key: "poster", t: state.time, request: model.request, say, locale, label, caption: `${label(method.name)} · ${say("bands_title")}` };
    drawQueues(shifted(pen, EDGE, top), run, method, axis, 480, view, colors);
    drawRates(shifted(pen, EDGE, top + 500), run, model.shown, method, axis, 330, view, colors);
  } else drawRun(pen, plan, model, token);
  pen.text(fit(pen, `${run.provenance.mode.toUpperCase()} · ${run.tab ? `${label(method.name)} · ` : ""}${model.source} · Fusescope`, { size: SIZE }, inner), EDGE, plan.height - EDGE / 2 - SIZE * 0.4, { size: SIZE, color: colors.muted });
}

function drawRun(pen, { top, inner, lanes }, model, token) {
  const { run, method, state, say, colors, label, locale } = model;
  const { scene, geo } = mapIn(inner, MAP, SIZE, run, method, state);
  drawMap(shifted(pen, EDGE, top), scene, geo, momentOf(model), { token, layer: state.layer, total: run.num_tokens, text: (p) => run.tokens[p], say, key: "poster", count: (value) => count(value, locale) }, colors);
  drawTimeline(shifted(pen, EDGE, top + MAP + 24), lanes, { t: state.time, method: method.name, label, say, locale, key: "poster" }, colors);
}
