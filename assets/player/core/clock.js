// From a time on the common clock to what has happened by then in every method. Pure functions of the recorded spans; knows no DOM.

const COMPUTE = new Set(["recompute", "correct"]);
const QUIET = new Set(["decode"]);

// When the first token was there in the recorded repeat.
export function firstTokenTime(method) {
  const ends = method.spans.filter((span) => !QUIET.has(span.stage)).map((span) => span.end_s);
  return ends.length ? Math.max(...ends) : method.ttft_s;
}

export function lastTokenTime(method) {
  const times = method.token_times_s;
  return firstTokenTime(method) + (times.length ? times[times.length - 1] : 0);
}

export const clockEnd = (methods) => Math.max(0.001, ...methods.map(lastTokenTime));

// Per layer: when computing it began and ended, when its stored KV began to be read and had been read. Infinity where it never was.
// A layer may be worked on twice (keys are corrected, then used), so the ends are the last ones.
export function layerTimes(method, numLayers) {
  const empty = () => new Float64Array(numLayers).fill(Infinity);
  const times = { start: empty(), done: empty(), readStart: empty(), read: empty() };
  const stretch = (span, first, last) => {
    times[first][span.layer] = Math.min(times[first][span.layer], span.start_s);
    times[last][span.layer] = times[last][span.layer] === Infinity ? span.end_s : Math.max(times[last][span.layer], span.end_s);
  };
  // What the selection read early (the keys of a critical layer) is not the layer's load.
  const from = selectionEnd(method);
  for (const span of method.spans) {
    if (span.layer < 0 || span.layer >= numLayers) continue;
    if (span.lane === "device" && COMPUTE.has(span.stage)) stretch(span, "start", "done");
    if (span.stage === "load" && span.lane !== "device" && span.end_s >= from) stretch(span, "readStart", "read");
  }
  // A server tells of no single layer: all of them are done when its first token is there, and nothing says when each began.
  if (!method.spans.some((span) => span.layer >= 0)) times.done.fill(firstTokenTime(method));
  return times;
}

export function selectionEnd(method) {
  const ends = method.spans.filter((span) => span.stage === "probe" || span.stage === "select").map((span) => span.end_s);
  return ends.length ? Math.max(...ends) : 0;
}

// How far a method has got: layers finished, the one being computed, layers whose stored KV is in memory and the last of them (-1: none).
export function frontier(times, t) {
  let done = 0, read = 0, running = -1, lastRead = -1;
  for (let layer = 0; layer < times.done.length; layer++) {
    if (times.done[layer] <= t) done++;
    else if (times.start[layer] <= t && running < 0) running = layer;
    if (times.read[layer] <= t) { read++; lastRead = layer; }
  }
  return { done, running, read, lastRead };
}

export const stallTime = (method) => method.spans.filter((span) => span.stage === "load_wait").reduce((sum, span) => sum + span.end_s - span.start_s, 0);

// Answer tokens that are out by a time.
export function tokensOut(method, t) {
  const first = firstTokenTime(method);
  if (t < first) return 0;
  return method.token_times_s.filter((seconds) => first + seconds <= t + 1e-9).length;
}

// The words of an answer that are out. Which letters belong to which answer token isn't recorded, so whole words are shown in
// proportion to the tokens, and all of them with the last token.
export function answerAt(method, t) {
  const total = method.token_times_s.length, out = tokensOut(method, t);
  if (!out) return "";
  if (out >= total) return method.answer;
  const words = method.answer.match(/\S+\s*/gu) || [];
  return words.slice(0, Math.max(1, Math.floor((words.length * out) / total))).join("").trimEnd();
}

// All instants at which something begins or ends, sorted: where stepping goes.
export function instants(methods) {
  const all = methods.flatMap((method) => [
    ...method.spans.flatMap((span) => [span.start_s, span.end_s]),
    ...method.token_times_s.map((seconds) => firstTokenTime(method) + seconds),
  ]);
  return [...new Set([0, ...all])].sort((a, b) => a - b);
}

export const stepTime = (times, t, direction) =>
  direction > 0 ? times.find((instant) => instant > t + 1e-9) ?? t : times.findLast((instant) => instant < t - 1e-9) ?? 0;
