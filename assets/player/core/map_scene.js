// What the token x layer map shows, apart from time and from drawing: columns, bands, scores, kinds of layers. Knows no DOM.
import { rowsAt } from "./budget.js";
import { columnMaxima, columnShares, cutoffScore } from "./tokens.js";

// Layers that all tokens ran through; () where the method did not say or is full prefill.
export function wholeLayers(run, method) {
  if (!method.layer_rows || method.name === "full") return new Set();
  return new Set(method.layer_rows.flatMap((rows, layer) => (rows >= run.num_tokens ? [layer] : [])));
}

// How many of the first layers have exact keys and values for every token: layer 0 (they come from the embeddings) and those behind
// layers that all tokens ran through.
export function exactLayers(run, method) {
  const whole = wholeLayers(run, method);
  let count = 1;
  while (whole.has(count - 1)) count++;
  return Math.min(count, run.num_layers);
}

// `columns` is the number of pixels to fill; `zoom` is null or [from, to); `flip` is null or two questions' choices (flip.js).
export function mapScene(run, method, ratio, zoom, columns, flip = null) {
  const [from, to] = zoom || [0, run.num_tokens], mask = rowsAt(run, method, ratio);
  const place = (position) => (Math.min(to, Math.max(from, position)) - from) / (to - from);
  return {
    from, to, columns, mask,
    shares: columnShares(mask, from, to, columns), flip: flip && flip.masks.map((one) => columnShares(one, from, to, columns)),
    documents: [place(run.system_len), place(run.question_start)],
    bands: run.chunks.map((chunk, i) => ({ start: place(chunk.start), stop: place(chunk.stop), number: i + 1, title: chunk.title })).filter((band) => band.stop > band.start),
    anchors: positionsIn(method.anchors, from, to).map((position) => place(position + 0.5)),
    answers: run.answer_spans.map(([start, stop]) => [place(start), place(stop)]).filter(([a, b]) => b > a),
    scores: scoreHeights(run, method, ratio, from, to, columns),
    critical: method.critical_layers, numLayers: run.num_layers,
    whole: wholeLayers(run, method), exact: exactLayers(run, method),
  };
}

const positionsIn = (mask, from, to) => (mask ? [...mask.keys()].filter((i) => mask[i] && from <= i && i < to) : []);

// Heights 0..1 on a logarithmic scale from the score that 2 % of the tokens lie under to the highest, and the cut-off's height.
// Attention has a long tail: on a linear scale one token would be seen and the rest not.
function scoreHeights(run, method, ratio, from, to, columns) {
  if (!method.scores) return null;
  const positive = [...method.scores].filter((score) => score > 0).sort((a, b) => a - b);
  if (!positive.length) return null;
  const low = Math.log(positive[Math.floor(positive.length * 0.02)]), high = Math.log(positive[positive.length - 1]);
  const height = (score) => (score > 0 ? Math.min(1, Math.max(0, (Math.log(score) - low) / Math.max(high - low, 1e-9))) : 0);
  const tops = columnMaxima(method.scores, run.system_len, from, to, columns), cut = cutoffScore(run, method, ratio);
  return { heights: tops.map((score) => (Number.isNaN(score) ? NaN : height(score))), cut: cut === null ? null : height(cut), cutScore: cut };
}

// Stretches of equal columns, so that what is drawn is as little as possible: [start, stop, value].
export function stretches(values) {
  const result = [];
  for (let i = 0; i < values.length; i++) {
    const last = result[result.length - 1];
    if (last && last[2] === values[i]) last[1] = i + 1;
    else result.push([i, i + 1, values[i]]);
  }
  return result;
}
