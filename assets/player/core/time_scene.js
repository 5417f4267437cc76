// What the timeline shows, apart from the playhead and from drawing: lanes of every method on one clock. Knows no DOM.
import { clockEnd, firstTokenTime, stallTime } from "./clock.js";
import { methodOf } from "./decode.js";
import { ghostOf } from "./ghost.js";

export function timeScene(run, names, ghost = null) {
  const methods = names.map((name) => methodOf(run, name)).filter(Boolean), full = methodOf(run, "full");
  const ghosts = methods.map((method) => ghostOf(ghost, method.name));
  return {
    end_s: Math.max(clockEnd(methods), ...ghosts.map((one) => (one ? one.first_s : 0))),
    blocks: methods.map((method, i) => ({
      name: method.name, ghost: ghosts[i],
      lanes: run.lanes.map((lane) => ({ lane, spans: method.spans.filter((span) => span.lane === lane && span.stage !== "decode") })).filter(({ spans }) => spans.length),
      first_s: firstTokenTime(method), ttft_s: method.ttft_s, stall_s: stallTime(method),
      tokens_s: method.token_times_s.map((seconds) => firstTokenTime(method) + seconds),
      speedup: full && method.name !== "full" ? full.ttft_s / method.ttft_s : null,
    })),
  };
}

// Round times for an axis, about `count` of them.
export function ticks(end, count) {
  const rough = end / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999);
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, i) => Math.round(i * step * 1e9) / 1e9);
}
