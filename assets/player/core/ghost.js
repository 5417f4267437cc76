// The other run of a pair, one live and one recorded: outlines under the lanes of the run shown, and what has to be said of it. Knows no DOM.
import { firstTokenTime } from "./clock.js";
import { methodOf } from "./decode.js";

const TOUCH_S = 1e-4;

// One method of the ghost as stretches [start_s, end_s] in which each lane was at work, up to its first token; null where it has none.
export function ghostOf(ghost, name) {
  const method = ghost && methodOf(ghost, name);
  if (!method) return null;
  const at = (lane) => joined(method.spans.filter((span) => span.lane === lane && span.stage !== "decode"));
  return { first_s: firstTokenTime(method), ttft_s: method.ttft_s, lanes: ghost.lanes.map((lane) => ({ lane, stretches: at(lane) })).filter(({ stretches }) => stretches.length) };
}

// An outline shows when a lane was at work, not at what, so spans that touch become one.
function joined(spans) {
  const result = [];
  for (const { start_s, end_s } of [...spans].sort((a, b) => a.start_s - b.start_s)) {
    const last = result[result.length - 1];
    if (last && start_s - last[1] < TOUCH_S) last[1] = Math.max(last[1], end_s); else result.push([start_s, end_s]);
  }
  return result;
}

export const comparable = ({ provenance: a }, { provenance: b }) => ["device", "num_threads", "model", "dtype"].every((name) => a[name] === b[name]);

// What keeps the times of two runs from being compared, as names of texts, the weightiest first.
export function differences(run, ghost) {
  const a = run.provenance, b = ghost.provenance, hashes = (one) => one.chunks.map((chunk) => chunk.cache_hash).join();
  return [
    [a.device !== b.device || a.num_threads !== b.num_threads, "ghost_machine"], [a.model !== b.model || a.dtype !== b.dtype, "ghost_model"],
    [run.question !== ghost.question, "ghost_question"], [run.ratio !== ghost.ratio, "ghost_ratio"], [hashes(run) !== hashes(ghost), "ghost_chunks"],
  ].filter(([differs]) => differs).map(([, name]) => name);
}

// Whether two runs can be each other's ghost: of one scenario, one of them measured just now.
export const arePair = (run, other) => Boolean(other && run.scenario && run.scenario === other.scenario && (run.provenance.mode === "live") !== (other.provenance.mode === "live"));
