// Draws the lanes of every method on one clock. What lies ahead of the playhead is dim.
import { ticks } from "../core/time_scene.js";
import { seconds, times } from "../core/words.js";
import { fit } from "./fit.js";

const FLAT = { disk: 0.5, copy: 0.5, device: 1.15 }, GHOST = 0.4;

// The height that a scene needs at letters of `size`, and where its blocks stand.
export function timelineGeometry(scene, w, size) {
  const narrow = w < 640, left = narrow ? size * 0.4 : size * 11.5, right = narrow ? size * 0.6 : size * 1.2, pad = size * 0.5;
  let y = size * 0.3;
  const blocks = scene.blocks.map((block) => {
    const top = y, label = narrow ? size * 1.35 : 0;
    y += label + pad * 0.4;
    const lanes = [...block.lanes].sort((a, b) => FLAT[b.lane] - FLAT[a.lane]).map(({ lane, spans }) => {
      const h = FLAT[lane] * size, place = { lane, spans, y, h };
      y += h + 3;
      return place;
    });
    const outlines = (block.ghost ? block.ghost.lanes : []).map(({ stretches }) => {
      const place = { stretches, y };
      y += GHOST * size + 3;
      return place;
    });
    y += pad * 0.4;
    return { ...block, top, lanes, outlines, bottom: y };
  });
  // Room to the right of the last first-token flag for its label.
  return { w, size, narrow, left, right, blocks, lanesEnd: y, h: y + size * 1.7, width: Math.max(1, w - left - right), end_s: scene.end_s };
}

export const xAt = (geo, t) => geo.left + (t / geo.end_s) * geo.width;
export const timeAtX = (geo, x) => Math.min(geo.end_s, Math.max(0, ((x - geo.left) / geo.width) * geo.end_s));

// `view`: {t, method (looked at), label(name), say, ghost (which run is outlined)}.
export function drawTimeline(pen, geo, view, colors) {
  pen.stamp("lanes", 0, 0, geo.w, geo.h, (sprite) => drawLanes(sprite, geo, view, colors));
  const x = xAt(geo, view.t), ahead = geo.left + geo.width - x + geo.right;
  if (ahead > 0.5) pen.rect(x, geo.size * 0.2, ahead, geo.lanesEnd - geo.size * 0.2, colors.panel, 0.62);
  drawTicks(pen, geo, x, view, colors);
  drawPlayhead(pen, geo, x, seconds(view.t, view.locale), colors);
  for (const block of geo.blocks) {
    if (geo.narrow) drawName(pen, geo, block, view, colors);
    drawResult(pen, geo, block, view, colors);
  }
}

const ticksOf = (geo) => ticks(geo.end_s, Math.max(2, geo.width / (geo.size * 8)));

// A tick that the playhead's own label would cover is left out.
function drawTicks(pen, geo, playhead, view, colors) {
  const look = { size: geo.size * 0.86, color: colors.muted, align: "center" }, own = pen.width(seconds(view.t, view.locale), { size: geo.size, bold: true }) / 2 + geo.size * 0.7;
  const covered = Math.min(Math.max(playhead, own), geo.w - own);
  for (const tick of ticksOf(geo)) {
    const label = seconds(tick, view.locale), half = pen.width(label, look) / 2, x = Math.min(Math.max(xAt(geo, tick), half + 2), geo.w - half - 2);
    if (Math.abs(x - covered) > half + own) pen.text(label, x, geo.lanesEnd + geo.size * 0.95, look);
  }
}

function drawLanes(pen, geo, view, colors) {
  for (const tick of ticksOf(geo)) {
    const x = xAt(geo, tick);
    pen.line(x, 0, x, geo.lanesEnd + 3, colors.line, 1);
  }
  for (const block of geo.blocks) {
    if (block.name === view.method) pen.rect(0, block.top, geo.w, block.bottom - block.top, colors.band, 0.55);
    if (!geo.narrow) drawName(pen, geo, block, view, colors);
    for (const lane of block.lanes) drawLane(pen, geo, lane, colors);
    drawGhost(pen, geo, block, view, colors);
    drawWords(pen, geo, block, colors);
  }
}

function drawName(pen, geo, block, view, colors) {
  const color = colors.methods[block.name] || colors.muted, bold = block.name === view.method, label = view.label(block.name);
  pen.rect(0, block.top + 1, 5, block.bottom - block.top - 3, color);
  const y = geo.narrow ? block.top + geo.size * 0.75 : (block.lanes.length ? block.lanes[0].y + block.lanes[0].h / 2 : block.top + geo.size * 0.8);
  pen.text(fit(pen, label, { size: geo.size, bold }, geo.narrow ? geo.width - geo.size * 11.5 : geo.left - geo.size * 1.4), geo.size * 0.8, y, { size: geo.size, color: colors.ink, bold, halo: geo.narrow ? colors.panel : null });
  if (geo.narrow) return;
  for (const { lane, y: top, h } of block.lanes.slice(1)) pen.text(view.say(`lane_${lane}`), geo.left - geo.size * 0.5, top + h / 2, { size: geo.size * 0.72, color: colors.muted, align: "right" });
}

function drawLane(pen, geo, lane, colors) {
  pen.rect(geo.left, lane.y, geo.width, lane.h, colors.waiting, 0.6);
  for (const span of lane.spans) {
    const x = xAt(geo, span.start_s), w = Math.max(lane.lane === "device" ? 0.6 : 1, xAt(geo, span.end_s) - x);
    pen.rect(x, lane.y, w, lane.h, colors.stages[span.stage]);
    if (w >= 3) pen.hatch(x, lane.y, w, lane.h, colors.hatches[span.stage], colors.panel, 0.75);
    // A border where there is room for one keeps layers apart.
    if (w >= 5) pen.rect(x + w - 1, lane.y, 1, lane.h, colors.panel, 0.8);
    if (span.stage === "load_wait" && w >= 1.5) pen.shape([[x, lane.y - 3], [x + Math.max(6, w), lane.y - 3], [x + Math.max(6, w) / 2, lane.y + 4]], colors.anchor);
  }
}

// The other run of the pair: outlines only, so that nobody takes it for what is shown; a hollow flag at its first token.
function drawGhost(pen, geo, { outlines, ghost }, view, colors) {
  if (!outlines.length) return;
  const h = GHOST * geo.size, x = xAt(geo, ghost.first_s), last = outlines[outlines.length - 1], top = outlines[0].y, r = geo.size * 0.3;
  for (const { stretches, y } of outlines) for (const [from, to] of stretches) pen.frame(xAt(geo, from), y + 0.5, Math.max(1, xAt(geo, to) - xAt(geo, from)), h, colors.muted, 1);
  const look = { size: geo.size * 0.72, color: colors.muted }, label = seconds(ghost.ttft_s, view.locale), middle = (top + last.y + h) / 2, width = pen.width(label, look) + r * 2;
  for (const [color, size] of [[colors.muted, r], [colors.panel, r * 0.6]]) pen.shape([[x, middle - size], [x + size, middle], [x, middle + size], [x - size, middle]], color);
  pen.text(label, x + width < geo.w ? x + r * 1.5 : x - width, middle, { ...look, halo: colors.panel });
  if (!geo.narrow) pen.text(view.say(`ghost_${view.ghost}`), geo.left - geo.size * 0.5, middle, { ...look, align: "right" });
}

function drawWords(pen, geo, block, colors) {
  const device = block.lanes.find(({ lane }) => lane === "device");
  if (!device) return;
  for (const t of block.tokens_s) pen.rect(xAt(geo, t), device.y + device.h * 0.28, 2, device.h * 0.44, colors.muted);
}

function drawResult(pen, geo, block, view, colors) {
  const device = block.lanes.find(({ lane }) => lane === "device") || block.lanes[0];
  if (!device) return;
  const reached = view.t >= block.first_s - 1e-9, x = xAt(geo, block.first_s), y = geo.narrow ? block.top + geo.size * 0.75 : device.y + device.h / 2, r = geo.size * 0.42;
  const flagY = device.y + device.h / 2;
  pen.line(x, device.y - 2, x, device.y + device.h + 2, colors.ink, 2);
  if (!reached) return;
  pen.shape([[x, flagY - r], [x + r, flagY], [x, flagY + r], [x - r, flagY]], colors.ink);
  // Its first blank must not break: a picture in SVG begins no text with a blank.
  const speed = block.speedup === null ? "" : `\u00a0 ${block.speedup >= 1 ? view.say("sooner", { times: times(block.speedup, view.locale) }) : view.say("later", { times: times(1 / block.speedup, view.locale) })}`;
  const look = { size: geo.size * (geo.narrow ? 0.95 : 1.1), bold: true, color: colors.ink, halo: colors.panel }, label = seconds(block.ttft_s, view.locale);
  if (geo.narrow) {
    pen.text(label + speed, geo.w - geo.size * 0.3, y, { ...look, align: "right" });
    return;
  }
  const width = pen.width(label, look) + pen.width(speed, { ...look, bold: false }) + geo.size * 0.5, fits = x + r + 6 + width < geo.w - 4;
  const start = fits ? x + r + 6 : x - r - 6 - width;
  pen.rect(start - 3, device.y, width + 4, device.h, colors.panel);
  if (block.name === view.method) pen.rect(start - 3, device.y, width + 4, device.h, colors.band, 0.55);
  pen.text(label, start, y, look);
  pen.text(speed, start + pen.width(label, look), y, { ...look, bold: false });
}

// `geo`: {w, size, lanesEnd}, as far as the playhead is concerned.
export function drawPlayhead(pen, geo, x, label, colors) {
  pen.line(x, 0, x, geo.lanesEnd + 4, colors.panel, 5);
  pen.line(x, 0, x, geo.lanesEnd + 4, colors.playhead, 2.5);
  const look = { size: geo.size, bold: true, color: colors.panel }, w = pen.width(label, look) + geo.size * 0.9, h = geo.size * 1.45;
  const at = Math.min(Math.max(x - w / 2, 0), geo.w - w), y = geo.lanesEnd + 3;
  pen.shape([[x - 6, y + 3], [x + 6, y + 3], [x, y - 5]], colors.playhead);
  pen.rect(at, y + 1, w, h - 4, colors.playhead);
  pen.text(label, at + w / 2, y + h / 2 - 1, { ...look, align: "center" });
}
