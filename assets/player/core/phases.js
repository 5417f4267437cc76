// The four phases of one method on the clock: passages are computed beforehand, the question is probed, tokens are selected, and the
// pipeline recomputes while it loads. A phase the method does not have is left out. Knows no DOM.
import { firstTokenTime } from "./clock.js";

const stretchOf = (spans) => ({ start_s: Math.min(...spans.map((s) => s.start_s)), end_s: Math.max(...spans.map((s) => s.end_s)) });

// From the first to the last stretch of a stage on the device, or null where the method has none.
export function spanOf(method, stage) {
  const spans = method.spans.filter((span) => span.stage === stage && span.lane === "device");
  return spans.length ? stretchOf(spans) : null;
}

export function phasesOf(run, method) {
  const phases = [];
  if (method.name !== "full") phases.push({ id: "precompute", start_s: 0, end_s: 0, before_s: run.chunks.reduce((sum, chunk) => sum + chunk.precompute_s, 0) });
  for (const id of ["probe", "select"]) if (spanOf(method, id)) phases.push({ id, ...spanOf(method, id) });
  const begin = Math.max(0, ...phases.map((phase) => phase.end_s));
  phases.push({ id: "pipeline", start_s: begin, end_s: firstTokenTime(method) });
  return phases;
}

// The phase at a time: before anything has begun it is the work done beforehand, after the first token none.
export function phaseAt(phases, t) {
  if (t <= 0) return phases[0].id;
  const timed = phases.filter((phase) => phase.id !== "precompute");
  const last = timed[timed.length - 1];
  if (t >= last.end_s) return "answer";
  return (timed.find((phase) => t < phase.end_s) || last).id;
}
