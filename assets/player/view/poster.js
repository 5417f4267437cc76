// The view as one picture for a file: question, headline, map, timeline, what is said of a second run or question, and where the numbers
// come from. Written once for both pens.
import { mapIn } from "./draw_map.js";
import { axisOf, drawQueues, drawRates } from "./evict_draw.js";
import { fit } from "./fit.js";
import { flipWords, paintMap } from "./map.js";
import { ghostWords, lanesIn, paintLanes } from "./timeline.js";

const WIDTH = 1600, SIZE = 17, EDGE = 40, MAP = 560, LEADING = 1.5;
// What fits in a line of the picture, cut at a blank where there is one.
const LINE = /.{1,150}(?: |$)|.{150}/gsu;

// A pen whose origin is moved.
function shifted(pen, dx, dy) {
  const moved = (names, move) => names.map((name) => [name, (...args) => pen[name](...move(...args))]), to = (x, y, ...rest) => [x + dx, y + dy, ...rest];
  return {
    ...pen,
    ...Object.fromEntries([...moved(["rect", "hatch", "frame"], to), ...moved(["text", "stamp"], (first, ...rest) => [first, ...to(...rest)]), ...moved(["shape", "path"], (points, ...rest) => [points.map(([x, y]) => to(x, y)), ...rest])]),
    line: (x, y, ...rest) => pen.line(...to(x, y), ...to(...rest)),
  };
}

export function posterPlan(model) {
  const inner = WIDTH - 2 * EDGE, top = EDGE + SIZE * 4.6;
  if (model.run.tab) return { width: WIDTH, height: 1010, inner, top };
  const lanes = lanesIn(inner, SIZE, model), said = [flipWords(model), ghostWords(model)].flatMap((text) => text.match(LINE) || []);
  return { width: WIDTH, height: Math.ceil(top + MAP + 24 + lanes.h + SIZE * (3 + LEADING * said.length) + EDGE / 2), inner, lanes, said, top };
}

export function drawPoster(pen, plan, model, token) {
  const { run, method, state, say, colors, label, locale } = model, { top, inner } = plan;
  pen.text(fit(pen, model.title, { size: SIZE * 1.7, bold: true }, inner), EDGE, EDGE + SIZE * 0.6, { size: SIZE * 1.7, bold: true, color: colors.ink });
  pen.text(fit(pen, model.verdict, { size: SIZE * 1.15 }, inner), EDGE, EDGE + SIZE * 2.7, { size: SIZE * 1.15, color: colors.muted });
  if (run.tab) {
    const axis = axisOf(run, state.zoom, inner, SIZE), view = { t: state.time, request: model.request, say, locale, label, caption: `${label(method.name)} · ${say("bands_title")}` };
    drawQueues(shifted(pen, EDGE, top), run, method, axis, 480, view, colors);
    drawRates(shifted(pen, EDGE, top + 500), run, model.shown, method, axis, 330, view, colors);
  } else drawRun(pen, plan, model, token);
  pen.text(fit(pen, `${run.provenance.mode.toUpperCase()} · ${run.tab ? `${label(method.name)} · ` : ""}${model.source} · Fusescope`, { size: SIZE }, inner), EDGE, plan.height - EDGE / 2 - SIZE * 0.4, { size: SIZE, color: colors.muted });
}

function drawRun(pen, { top, inner, lanes, said }, model, token) {
  const low = top + MAP + 24;
  paintMap(shifted(pen, EDGE, top), mapIn(inner, MAP, SIZE, model), model, token);
  paintLanes(shifted(pen, EDGE, low), lanes, model);
  said.forEach((text, i) => pen.text(fit(pen, text, { size: SIZE }, inner), EDGE, low + lanes.h + SIZE * (1 + LEADING * i), { size: SIZE, color: model.colors.ink }));
}
