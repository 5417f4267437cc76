// Draws the token x layer map at a time. Recomputed tokens are columns, because a method picks one set for all layers; what moves is how
// many layers are done. Every state has a colour and a second sign: hatched = loaded, solid = recomputed, diamond = anchor.
import { frontier } from "../core/clock.js";
import { mapScene, stretches } from "../core/map_scene.js";
import { tokenLabel } from "../core/words.js";
import { ticks } from "../core/time_scene.js";
import { drawFlip, flipHeight } from "./draw_flip.js";
import { fit } from "./fit.js";

// Added to a column's step where the question stands.
const QUESTION = 10;

// Where everything stands in a box of w x h points with letters of `size`.
export function mapGeometry(scene, w, h, size) {
  const narrow = w < 560;
  const left = size * (narrow ? 2.3 : 3.4), right = narrow ? size * 0.5 : size * 8.6;
  const band = size * 1.75, marks = scene.anchors.length || scene.answers.length ? size * 0.95 : size * 0.3;
  const strip = scene.scores ? Math.min(size * 5.2, h * 0.22) : 0;
  const top = band + marks + (scene.flip ? flipHeight(size) : 0), bottom = size * (scene.to - scene.from < scene.columns / (size * 2.4) ? 2 : 1.7);
  const row = (h - top - bottom - strip) / scene.numLayers;
  const after = scene.scores && scene.critical.length ? Math.max(...scene.critical) : scene.numLayers - 1;
  const yOf = (layer) => top + layer * row + (layer > after ? strip : 0);
  return { w, h, size, narrow, left, right, band, marks, strip, top, bottom, row, after, yOf, width: Math.max(1, w - left - right), stripY: yOf(after) + row };
}

// A scene of about a column a pixel for a box, and where everything stands in it.
export function mapIn(w, h, size, { run, method, state: { ratio, zoom }, flip }) {
  const of = (columns) => { const scene = mapScene(run, method, ratio, zoom, columns, flip); return { scene, geo: mapGeometry(scene, w, h, size) }; };
  return of(Math.max(1, Math.floor(of(1).geo.width)));
}

// Position in the prompt under a point of the map, or null beside it.
export function positionAt(scene, geo, x) {
  const share = (x - geo.left) / geo.width;
  if (share < 0 || share >= 1) return null;
  return Math.min(scene.to - 1, Math.floor(scene.from + share * (scene.to - scene.from)));
}

// The layer whose row is under a point, or null above, below and in the strip of scores.
export function layerAt(scene, geo, y) {
  for (let layer = 0; layer < scene.numLayers; layer++) if (y >= geo.yOf(layer) && y < geo.yOf(layer) + geo.row) return layer;
  return null;
}

const xOf = (scene, geo, position) => geo.left + ((position - scene.from) / (scene.to - scene.from)) * geo.width;

// `moment`: {t, times (layerTimes), choose: [start, end] of the selection or null, probing}. `view`: {token, text(position), say}.
export function drawMap(pen, scene, geo, moment, view, colors) {
  pen.stamp(`base ${moment.probing} ${moment.beforeAll}`, 0, 0, geo.w, geo.h, (base) => {
    drawBands(base, scene, geo, colors);
    drawMarks(base, scene, geo, moment, colors);
    if (scene.flip) drawFlip(base, scene.flip, geo, geo.band + geo.marks, view.say, colors);
    drawLayerLabels(base, scene, geo, colors);
    drawAxis(base, scene, geo, view, colors);
    drawNames(base, geo, view, colors);
  });
  const front = frontier(moment.times, moment.t);
  for (let layer = 0; layer < scene.numLayers; layer++) drawLayer(pen, scene, geo, layer, layerState(layer, moment), colors);
  if (moment.probing) pen.stamp("probe", 0, 0, geo.w, geo.h, (sprite) => drawProbe(sprite, scene, geo, colors));
  drawAnswerFrames(pen, scene, geo, colors);
  drawScores(pen, scene, geo, moment, view, colors);
  drawFrontier(pen, scene, geo, front, moment, view, colors);
  if (view.layer !== null) pen.frame(geo.left - 1, geo.yOf(view.layer) - 0.5, geo.width + 2, geo.row, colors.anchor, 2);
  if (scene.to - scene.from < view.total) drawWindow(pen, scene, geo, view, colors);
  if (view.token !== null && scene.from <= view.token && view.token < scene.to) drawPointer(pen, scene, geo, view, colors);
}

// "waiting", "loaded" (its stored KV is in memory), "running" or "done".
export function layerState(layer, { t, times }) {
  if (times.done[layer] <= t) return "done";
  if (times.start[layer] <= t) return "running";
  return times.read[layer] <= t ? "loaded" : "waiting";
}

function drawBands(pen, scene, geo, colors) {
  const y = 2, h = geo.band - 5;
  for (const { start, stop, number, title } of scene.bands) {
    const x = geo.left + start * geo.width, w = (stop - start) * geo.width - 1.5;
    pen.rect(x, y, w, h, number % 2 ? colors.band : colors.bandOdd);
    const look = { size: geo.size * 0.86, color: colors.ink, bold: true };
    const full = `${number} ${title}`, room = w - 8;
    if (pen.width(full, look) < room) pen.text(full, x + 5, y + h / 2, look);
    else if (pen.width(String(number), look) < w) pen.text(String(number), x + w / 2, y + h / 2, { ...look, align: "center" });
  }
}

// What runs down and what runs across, said beside the picture.
function drawNames(pen, geo, view, colors) {
  const look = { size: geo.size * 0.86, color: colors.muted }, y = geo.band / 2 - 0.5;
  if (geo.narrow) return;
  pen.text(view.say("layer"), Math.max(pen.width(view.say("layer"), look), geo.left - geo.size * 0.45), y, { ...look, align: "right" });
  pen.text(view.say("documents"), geo.left + geo.width + geo.size * 0.5, y, look);
}

function drawMarks(pen, scene, geo, moment, colors) {
  const y = geo.band + geo.marks / 2 - 1, r = geo.size * (moment.probing ? 0.36 : 0.26);
  for (const [start, stop] of scene.answers) {
    const x = geo.left + start * geo.width, w = Math.max(4, (stop - start) * geo.width);
    pen.rect(x, geo.band - 3, w, 4, colors.answer);
  }
  if (moment.beforeAll) return;
  for (const share of scene.anchors) {
    const x = geo.left + share * geo.width;
    pen.shape([[x, y - r], [x + r * 0.72, y], [x, y + r], [x - r * 0.72, y]], colors.anchor, moment.probing ? 1 : 0.75);
  }
}

// While the question is probed, only the anchors and the question itself are there, and only up to the layer that is read.
function drawProbe(pen, scene, geo, colors) {
  const last = scene.critical.length ? Math.max(...scene.critical) : scene.numLayers - 1, w = Math.max(1, geo.size * 0.12);
  for (let layer = 0; layer <= last; layer++) {
    const y = geo.yOf(layer), h = Math.max(1, geo.row - (geo.row >= 5 ? 1 : 0)), x = geo.left + scene.documents[1] * geo.width;
    for (const share of scene.anchors) pen.rect(geo.left + share * geo.width - w / 2, y, w, h, colors.anchor, 0.75);
    pen.rect(x, y, geo.left + geo.width - x, h, colors.question);
  }
}

// Drawn over the rows, or it would not be seen.
function drawAnswerFrames(pen, scene, geo, colors) {
  const low = geo.h - geo.bottom;
  for (const [start, stop] of scene.answers) {
    const x = geo.left + start * geo.width, w = Math.max(4, (stop - start) * geo.width);
    pen.frame(x, geo.top, w, low - geo.top, colors.panel, 3.5);
    pen.frame(x, geo.top, w, low - geo.top, colors.answer, 2, [6, 3]);
  }
}

function drawLayer(pen, scene, geo, layer, state, colors) {
  const y = geo.yOf(layer), gap = geo.row >= 5 ? 1 : 0, h = Math.max(1, geo.row - gap);
  const kind = scene.whole.has(layer) ? "whole" : layer < scene.exact ? "exact" : "stored";
  const shown = state === "running" ? "loaded" : state;
  pen.stamp(`${kind} ${shown}`, geo.left, y, geo.width, h, (sprite) => drawCells(sprite, scene, geo.width, h, kind, shown, colors));
  if (state === "running") pen.frame(geo.left - 1, y - 0.5, geo.width + 2, h + 1, colors.ink, 2);
}

// One layer's cells; its height is all that differs from layer to layer.
function drawCells(pen, scene, width, h, kind, state, colors) {
  const [docStart, docStop] = scene.documents.map((share) => share * width), per = width / scene.columns;
  pen.rect(0, 0, width, h, colors.waiting);
  if (docStart > 0) { pen.rect(0, 0, docStart, h, colors.system, state === "waiting" ? 0.3 : 0.75); pen.hatch(0, 0, docStart, h, "|", colors.panel, 0.7); }
  if (state === "waiting") return;
  if (kind === "stored" && docStop > docStart) {
    pen.rect(docStart, 0, docStop - docStart, h, colors.loaded, 0.12);
    pen.hatch(docStart, 0, docStop - docStart, h, "/", colors.loaded, 0.6);
  } else if (state === "done") {
    pen.rect(docStart, 0, docStop - docStart, h, colors.exact, kind === "whole" ? 0 : 0.55);
    pen.hatch(docStart, 0, docStop - docStart, h, ".", colors.ink, 0.5);
  }
  // Five steps of share are told apart; more would only make more rectangles.
  const steps = Array.from(scene.shares, (share, i) => (kind === "whole" ? 4 : Math.ceil(share * 4)) + (i * per >= docStop - 1e-6 ? QUESTION : 0));
  for (const [start, stop, value] of stretches(steps)) {
    const step = value % QUESTION, x = start * per, w = (stop - start) * per;
    if (!step) continue;
    const color = value >= QUESTION ? colors.question : colors.recomputed;
    pen.rect(x, 0, w, h, colors.panel, state === "done" ? 1 : 0.7);
    pen.rect(x, 0, w, h, color, state === "done" ? 0.25 + step * 0.1875 : 0.16);
  }
}

function drawScores(pen, scene, geo, moment, view, colors) {
  if (!scene.scores || geo.strip < 8) return;
  const y = geo.stripY, h = geo.strip, base = y + h - 3, per = geo.width / scene.columns, room = h - geo.size * 0.4 - 4;
  pen.rect(geo.left, y + 1, geo.width, h - 3, colors.panel);
  pen.frame(geo.left - 1.5, geo.yOf(geo.after) - 1, geo.width + 3, geo.row + h - 1, colors.ink, 1.5);
  const grown = moment.choose ? Math.min(1, Math.max(0, (moment.t - moment.choose[0]) / Math.max(1e-9, 0.9 * (moment.choose[1] - moment.choose[0])))) : 1;
  if (grown > 0) {
    pen.stamp(`scores ${grown === 1 ? "full" : grown.toFixed(3)}`, geo.left, y, geo.width, h, (sprite) => {
      scene.scores.heights.forEach((height, i) => {
        if (Number.isNaN(height)) return;
        const tall = Math.max(1, height * room) * grown;
        sprite.rect(i * per, h - 3 - tall, per + 0.2, tall, scene.shares[i] > 0 && grown === 1 ? colors.recomputed : colors.faint);
      });
    });
    if (scene.scores.cut !== null && grown === 1) {
      const line = base - scene.scores.cut * room;
      pen.line(geo.left, line, geo.left + geo.width, line, colors.ink, 1.5, [6, 4]);
      if (!geo.narrow) pen.text(view.say("cut_off"), geo.left + geo.width + geo.size * 0.5, line, { size: geo.size * 0.86, color: colors.ink });
    }
  }
  const hint = { size: geo.size * (geo.narrow ? 0.86 : 1.1), color: colors.muted, align: "center" };
  if (grown <= 0) pen.text(fit(pen, view.say("attention_here"), hint, geo.width - geo.size), geo.left + geo.width / 2, y + h / 2, hint);
  if (!geo.narrow) pen.text(view.say("attention"), geo.left + geo.width + geo.size * 0.5, y + geo.size * 0.5, { size: geo.size * 0.86, color: colors.muted });
}

function drawLayerLabels(pen, scene, geo, colors) {
  const every = Math.max(1, Math.ceil((geo.size * 1.3) / geo.row / 5) * 5), critical = new Set(scene.critical.length <= 8 ? scene.critical : []);
  const near = (layer) => [...critical].some((other) => other !== layer && Math.abs(other - layer) * geo.row < geo.size * 1.1);
  for (let layer = 0; layer < scene.numLayers; layer++) {
    const special = critical.has(layer);
    if (!special && (layer % every || near(layer))) continue;
    const look = { size: geo.size * (special ? 1 : 0.86), color: special ? colors.ink : colors.muted, align: "right", bold: special };
    pen.text(special ? `▸${layer}` : String(layer), geo.left - geo.size * 0.45, geo.yOf(layer) + geo.row / 2, look);
  }
}

function drawFrontier(pen, scene, geo, front, moment, view, colors) {
  const at = front.running >= 0 ? front.running : front.done;
  const x = geo.left + geo.width, look = { size: geo.size, color: colors.ink, bold: true };
  const near = (y) => scene.scores && Math.abs(y - geo.stripY - geo.size * 0.5) < geo.size;
  if (front.done > 0 && front.done < scene.numLayers) pen.line(geo.left - geo.size * 0.3, geo.yOf(at), x + geo.size * 0.3, geo.yOf(at), colors.ink, 3);
  if (geo.narrow || moment.beforeAll) return;
  const done = front.done >= scene.numLayers;
  const y = done ? geo.yOf(scene.numLayers - 1) + geo.row / 2 : geo.yOf(at) + geo.row / 2, shift = near(y) ? geo.size * 1.2 : 0;
  if (done || front.running >= 0) {
    pen.shape([[x + 4, y], [x + geo.size * 0.8, y - geo.size * 0.42], [x + geo.size * 0.8, y + geo.size * 0.42]], colors.recomputed);
    pen.text(done ? view.say("all_done") : view.say("computing", { layer: String(at) }), x + geo.size, y - shift, { ...look, halo: colors.panel });
  }
  if (!done && front.read > 0) {
    const last = front.lastRead, yRead = geo.yOf(last) + geo.row / 2;
    const away = Math.abs(yRead - y) < geo.size * 1.25 ? y + geo.size * 1.3 : yRead;
    pen.shape([[x + 4, yRead], [x + geo.size * 0.7, yRead - geo.size * 0.34], [x + geo.size * 0.7, yRead + geo.size * 0.34]], colors.loaded);
    pen.text(view.say("read_to", { layer: String(last) }), x + geo.size, away, { size: geo.size * 0.86, color: colors.muted, halo: colors.panel });
  }
}

function drawAxis(pen, scene, geo, view, colors) {
  const y = geo.h - geo.bottom / 2, size = geo.size * 0.86, per = geo.width / (scene.to - scene.from), look = { size, color: colors.muted, align: "center" };
  if (per >= geo.size * 2.4) {
    for (let p = scene.from; p < scene.to; p++) pen.text(tokenLabel(view.text(p), Math.max(2, Math.floor(per / size / 0.56))), xOf(scene, geo, p + 0.5), y, { ...look, color: colors.ink });
    return;
  }
  const all = ticks(scene.to - scene.from, Math.max(2, geo.width / (geo.size * 7))).map((tick) => tick + scene.from).filter((tick) => Number.isInteger(tick) && tick < scene.to);
  const name = view.say("axis_tokens"), free = geo.left + geo.width - pen.width(name, look) - size;
  for (const tick of all) {
    const x = xOf(scene, geo, tick);
    pen.line(x, geo.h - geo.bottom, x, geo.h - geo.bottom + 4, colors.muted, 1);
    const label = view.count(tick), half = pen.width(label, look) / 2;
    if (x + half < free) pen.text(label, Math.max(x, half), y + 1, look);
  }
  pen.text(name, geo.left + geo.width, y + 1, { ...look, align: "right" });
}

// Where the zoomed part lies in the whole prompt.
function drawWindow(pen, scene, geo, view, colors) {
  const y = geo.h - 4, x = geo.left + (scene.from / view.total) * geo.width;
  pen.rect(geo.left, y, geo.width, 3, colors.faint);
  pen.rect(x, y - 1, Math.max(4, ((scene.to - scene.from) / view.total) * geo.width), 5, colors.ink);
}

function drawPointer(pen, scene, geo, view, colors) {
  const x0 = xOf(scene, geo, view.token), x1 = xOf(scene, geo, view.token + 1), mid = (x0 + x1) / 2, half = Math.max(2, (x1 - x0) / 2);
  const low = geo.h - geo.bottom;
  pen.frame(mid - half - 1, geo.band, half * 2 + 2, low - geo.band, colors.panel, 4);
  pen.frame(mid - half - 1, geo.band, half * 2 + 2, low - geo.band, colors.ink, 1.75);
  const look = { size: geo.size * 1.05, bold: true, color: colors.panel }, label = tokenLabel(view.text(view.token)), w = pen.width(label, look) + geo.size;
  const x = Math.min(Math.max(mid - w / 2, 1), geo.w - w - 1), h = geo.band - 2;
  pen.rect(x, 1, w, h, colors.ink);
  pen.shape([[mid - 5, 1 + h], [mid + 5, 1 + h], [mid, h + 7]], colors.ink);
  pen.text(label, x + w / 2, 1 + h / 2, { ...look, align: "center" });
}
