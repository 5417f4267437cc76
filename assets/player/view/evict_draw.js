// Draws what the Evict view shows over the requests of a load, for both pens. What lies ahead of the playhead is dim.
import { bandsOf, momentAt, partsOf, rate, rateOf, weightGroups } from "../core/cache_facts.js";
import { ticks } from "../core/time_scene.js";
import { count, percent } from "../core/words.js";
import { drawPlayhead } from "./draw_timeline.js";
import { bandWords, foundOf, groupWords, short } from "./evict_words.js";
import { fit } from "./fit.js";

// Requests from left to right, room for scales before and for names behind them. `zoom` is null or [from, to).
export function axisOf(film, zoom, w, size) {
  const [from, to] = zoom || [0, film.num_tokens], narrow = w < 640, left = size * (narrow ? 2.8 : 3.6), right = size * (narrow ? 9.4 : 11.5);
  return { w, size, left, right, from, to, last: Math.max(from + 1, to - 1), width: Math.max(1, w - left - right) };
}
export const placeOf = (axis, t) => axis.left + ((Math.min(axis.last, Math.max(axis.from, t)) - axis.from) / (axis.last - axis.from)) * axis.width;
export const requestAtX = (axis, x) => Math.round(axis.from + Math.min(1, Math.max(0, (x - axis.left) / axis.width)) * (axis.last - axis.from));

const small = (axis, colors, align = "right") => ({ size: axis.size * 0.86, color: colors.muted, align });

// Names beside where their lines or bands end, moved apart. `rows`: {y, text, color, hatch, bold}.
function drawLabels(pen, axis, rows, low, high, colors) {
  const { size } = axis, gap = size * 1.15, sorted = [...rows].sort((a, b) => a.y - b.y), x = axis.w - axis.right + size * 0.5;
  let edge = low + gap / 2;
  for (const row of sorted) { row.at = Math.max(row.y, edge); edge = row.at + gap; }
  edge = high - gap / 2;
  for (const row of sorted.reverse()) {
    row.at = Math.min(row.at, edge);
    edge = row.at - gap;
    swatch(pen, x, row.at - size * 0.35, size * 0.7, size * 0.7, row, colors);
    pen.text(fit(pen, row.text, { size: size * 0.9, bold: row.bold }, axis.right - size * 1.5), x + size, row.at, { size: size * 0.9, bold: row.bold, color: colors.ink });
  }
}

function swatch(pen, x, y, w, h, { color, hatch }, colors) {
  pen.rect(x, y, w, h, color);
  pen.hatch(x, y, w, h, hatch, colors.panel, 0.6);
}

function drawCounts(pen, axis, y, view, colors) {
  const { from, last } = axis, room = Math.max(2, axis.width / (axis.size * 8)) * (last / (last - from)), own = axis.size * 5;
  for (const tick of ticks(last, room)) {
    if (tick < from || tick % 1) continue;
    const x = placeOf(axis, tick);
    pen.line(x, y, x, y + 4, colors.muted, 1);
    if (Math.abs(x - placeOf(axis, view.t)) > own) pen.text(count(tick, view.locale), x, y + axis.size, small(axis, colors, "center"));
  }
}

function drawHead(pen, axis, low, view, colors) {
  const x = placeOf(axis, view.t);
  pen.rect(x, 0, Math.max(0, axis.left + axis.width - x), low, colors.panel, 0.62);
  return x;
}

const shortLabel = (view, { name }) => view.label(name).split(/ ?[(（]/u)[0];
const headLabel = (view) => view.say("request_short", { request: count(view.request, view.locale) });

// What the cache holds by queue, at every recorded moment until the next; names and shares as of the playhead.
export function drawQueues(pen, film, method, axis, h, view, colors) {
  const { size } = axis, low = h - size * 1.9, room = low - size * 0.4, y = (blocks) => low - (blocks / film.capacity_blocks) * room, { request } = method.snapshots;
  const stack = (moment, draw) => {
    let below = 0;
    for (const [name, num] of bandsOf(film, method, moment)) { draw(name, below, below + num); below += num; }
  };
  pen.stamp("bands", 0, 0, axis.w, h, (sprite) => {
    for (let k = 0; k < request.length; k++) {
      const [x, next] = [request[k], k + 1 < request.length ? request[k + 1] : axis.last].map((t) => Math.round(placeOf(axis, t)));
      if (next > x) stack(k, (name, from, to) => to > from && swatch(sprite, x, y(to), next - x, y(from) - y(to), colors.bands[name], colors));
    }
    for (const share of [0, 0.5, 1]) sprite.text(count(share * film.capacity_blocks, view.locale), axis.left - size * 0.4, Math.max(size * 0.6, y(share * film.capacity_blocks)), small(axis, colors));
  });
  const x = drawHead(pen, axis, low, view, colors), moment = momentAt(method, view.request), rows = [];
  drawCounts(pen, axis, low, view, colors);
  if (view.caption) pen.text(fit(pen, view.caption, { size, bold: true }, axis.width - size), axis.left + size * 0.6, size * 1.2, { size, bold: true, color: colors.ink, halo: colors.panel });
  if (moment >= 0) stack(moment, (name, from, to) => rows.push({ y: y((from + to) / 2), text: `${percent((to - from) / film.capacity_blocks, view.locale)} ${view.say(`b_${name}`)}`, ...colors.bands[name] }));
  drawLabels(pen, axis, rows, 0, low, colors);
  drawPlayhead(pen, { w: axis.w, size, lanesEnd: low }, x, headLabel(view), colors);
}

function rateScale(shown) {
  const low = Math.min(...shown.map(({ warm }) => warm[0])), high = Math.max(...shown.map(({ warm }) => warm[1])), room = Math.max(0.01, 0.08 * (high - low));
  return [low > 0.3 ? Math.max(0, low - room) : 0, Math.min(1, high + room)];
}

// Hit rate so far of every policy shown, and below it what the one looked at evicted, as bars of evicted and regretted blocks.
export function drawRates(pen, film, shown, method, axis, h, view, colors) {
  const { size } = axis, bottom = h - size * 6.6, low = h - size * 1.9;
  const [least, most] = rateScale(shown), y = (share) => Math.min(bottom, Math.max(size * 0.5, bottom - ((share - least) / (most - least)) * (bottom - size * 0.5)));
  pen.stamp("rates", 0, 0, axis.w, h, (sprite) => {
    for (const share of [0, 0.5, 1]) {
      const value = least + share * (most - least);
      sprite.line(axis.left, y(value), axis.left + axis.width, y(value), colors.line, 1);
      sprite.text(percent(value, view.locale), axis.left - size * 0.4, Math.max(size * 0.6, y(value)), small(axis, colors));
    }
    for (const one of [...shown].sort((a, b) => (a === method) - (b === method))) {
      const points = [];
      for (let i = axis.from; i < axis.to; i++) points.push([placeOf(axis, i), y(rateOf(film, one, i))]);
      sprite.path(points, colors.methods[one.name], one === method ? 4 : 2, colors.dashes[one.name]);
    }
    drawBars(sprite, method, axis, bottom + size * 1.7, low, colors);
  });
  const x = drawHead(pen, axis, low, view, colors);
  for (const [name, top] of [["rates_note", size * 0.9], ["regret_title", bottom + size]]) pen.text(fit(pen, view.say(name), small(axis, colors), axis.width), axis.left + size * 0.4, top, { ...small(axis, colors, "left"), halo: colors.panel });
  drawCounts(pen, axis, low, view, colors);
  drawLabels(pen, axis, shown.map((one) => ({ y: y(rateOf(film, one, view.request)), text: `${rate(rateOf(film, one, view.request), view.locale)} ${shortLabel(view, one)}`, color: colors.methods[one.name], bold: one === method })), 0, bottom + size, colors);
  drawPlayhead(pen, { w: axis.w, size, lanesEnd: low }, x, headLabel(view), colors);
}

// Bars of two pixels or more: requests that share one are added up.
function drawBars(pen, method, axis, top, low, colors) {
  const num = axis.to - axis.from, bars = Math.max(1, Math.min(num, Math.floor(axis.width / 2))), left = new Float64Array(bars), wrong = new Float64Array(bars), w = axis.width / bars;
  for (let i = axis.from; i < axis.to; i++) {
    const bar = Math.floor(((i - axis.from) / num) * bars);
    left[bar] += method.starts[i + 1] - method.starts[i];
    wrong[bar] += method.regrets[i];
  }
  const most = Math.max(1, left.reduce((a, b) => Math.max(a, b), 0)), room = low - top;
  pen.line(axis.left, low, axis.left + axis.width, low, colors.muted, 1);
  for (let bar = 0; bar < bars; bar++) {
    const x = axis.left + bar * w, tall = (left[bar] / most) * room, bad = (wrong[bar] / most) * room;
    if (tall) pen.rect(x, low - tall, Math.max(1, w - 0.5), tall, colors.faint);
    if (bad) swatch(pen, x, low - bad, Math.max(1, w - 0.5), bad, colors.bands.evicted, colors);
  }
}

// What the policy has learned: a row of lines for every group of weights.
const rowsOf = ([, lines]) => 2.3 + Math.max(2.4, 1.15 * lines.length);
export const weightsHeight = (method, size) => size * weightGroups(method).reduce((sum, group) => sum + rowsOf(group), 0);

export function drawWeights(pen, method, axis, view, colors) {
  const { size } = axis, { request, weights } = method.snapshots, groups = weightGroups(method), columns = method.weight_names.length, value = (k, column) => weights[k * columns + column];
  const now = momentAt(method, view.request);
  let bottom = 0;
  for (const [group, lines] of groups) {
    const top = bottom + size * 1.6, low = top + size * (rowsOf([group, lines]) - 2.2), all = lines.flatMap(([, column]) => Array.from(request, (_, k) => value(k, column)));
    const least = Math.min(...all), greatest = Math.max(...all), span = greatest - least || 1, y = (v) => low - ((v - least) / span) * (low - top);
    bottom = low + size * 0.6;
    pen.text(fit(pen, groupWords(view.say, group), { size: size * 0.95, bold: true }, axis.w - axis.left), axis.left, top - size * 0.9, { size: size * 0.95, bold: true, color: colors.ink });
    for (const v of new Set([least, greatest])) pen.text(short(v, view.locale), axis.left - size * 0.4, y(v), small(axis, colors));
    const color = ([name], i) => (colors.bands[name === "cot" ? "thinking" : name] || { color: [colors.ink, colors.loaded, colors.answer][i % 3] });
    lines.forEach((line, i) => pen.path(Array.from(request, (r, k) => [placeOf(axis, r), y(value(k, line[1]))]), color(line, i).color, 2.5, [[], [7, 4], [2, 3], [9, 3, 2, 3]][i % 4]));
    pen.rect(placeOf(axis, view.t), top - 3, Math.max(0, axis.left + axis.width - placeOf(axis, view.t)), low - top + 6, colors.panel, 0.62);
    pen.line(placeOf(axis, view.t), top - 3, placeOf(axis, view.t), low + 3, colors.playhead, 1.5);
    if (now >= 0) drawLabels(pen, axis, lines.map((line, i) => ({ y: y(value(now, line[1])), text: `${short(value(now, line[1]), view.locale)} ${bandWords(view.say, line[0])}`, ...color(line, i) })), top - size * 0.5, low + size * 0.5, colors);
  }
}

// The prompt of one request under every policy shown: tokens found first, then what was missed by cause; lines part the blocks.
export const promptHeight = (shown, size) => size * (3 * shown.length + 4.8);

export function drawPrompt(pen, film, shown, method, w, view, colors, size) {
  const total = Math.max(1, film.requests.prompt_tokens[view.request]), block = (film.block_tokens / total) * w;
  shown.forEach((one, row) => {
    const top = row * size * 3 + size * 1.4, look = { size: size * 0.92, bold: one === method, color: colors.ink }, found = foundOf(view, one), words = view.say("found_of", found);
    const hits = pen.width(words + shortLabel(view, one), look) + size < w ? words : `${found.found} / ${found.total}`;
    pen.text(hits, w, top - size * 0.7, { ...look, align: "right" });
    pen.text(fit(pen, shortLabel(view, one), look, w - pen.width(hits, look) - size), 0, top - size * 0.7, look);
    let x = 0;
    for (const [name, tokens] of partsOf(one, view.request)) {
      const wide = (tokens / total) * w;
      if (wide) swatch(pen, x, top, wide, size * 1.3, colors.bands[name], colors);
      x += wide;
    }
    for (let at = block; block >= 4 && at < w; at += block) pen.rect(at, top, 1, size * 1.3, colors.panel, 0.9);
  });
  partsOf(method, view.request).forEach(([name, tokens], i) => {
    const x = (i % 2) * 0.42 * w, y = size * (3 * shown.length + 0.9 + 1.35 * (i >> 1));
    swatch(pen, x, y - size * 0.35, size * 0.7, size * 0.7, colors.bands[name], colors);
    pen.text(fit(pen, `${count(tokens, view.locale)} ${view.say(`b_${name}`)}`, { size: size * 0.88 }, w * [0.42, 0.58, 0.42, 0.58, 1][i] - size * 1.2), x + size, y, { size: size * 0.88, color: colors.ink });
  });
}
