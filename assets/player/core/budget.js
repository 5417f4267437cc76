// Which tokens a method recomputes at any ratio: exact, because the whole ranking was recorded. Knows no DOM.

// max(1, floor(r N)), 0 at r = 0: the engine's rule (engine.types.budget).
export function budget(ratio, numDoc) {
  if (ratio <= 0) return 0;
  return Math.min(numDoc, Math.max(1, Math.floor(ratio * numDoc + 1e-9)));
}

export const isMeasured = (run, ratio) => Math.abs(ratio - run.ratio) < 1e-9;

// Uint8 [T]: 1 where a token is recomputed. A method without a ranking keeps the rows that were run.
export function rowsAt(run, method, ratio) {
  if (!method.ranking || isMeasured(run, ratio)) return method.rows;
  const mask = Uint8Array.from(method.rows);
  mask.fill(0, run.system_len, run.question_start);
  for (const position of method.ranking.subarray(0, budget(ratio, run.num_doc))) mask[position] = 1;
  return mask;
}

export function countDoc(run, mask) {
  let count = 0;
  for (let i = run.system_len; i < run.question_start; i++) count += mask[i];
  return count;
}

// Methods that chose: neither all document tokens nor none.
export const isSelective = (run, method) => {
  const count = countDoc(run, method.rows);
  return count > 0 && count < run.num_doc;
};

// Which sentence says why a method has no ranking: it makes none, or a server keeps it to itself.
export const unranked = (run, method) => (run.provenance.versions?.sglang && isSelective(run, method) ? "budget_untold" : "budget_none");

// Time to first token at a ratio from points [[ratio, seconds], ...] sorted by ratio: measured at a point, a straight line between
// two, null outside them: nothing is extrapolated.
export function timeAt(points, ratio) {
  for (let i = 0; i < points.length; i++) {
    const [r, s] = points[i];
    if (Math.abs(r - ratio) < 1e-9) return { seconds: s, measured: true };
    if (i + 1 < points.length && r < ratio && ratio < points[i + 1][0]) {
      const [r1, s1] = points[i + 1];
      return { seconds: s + ((ratio - r) / (r1 - r)) * (s1 - s), measured: false };
    }
  }
  return null;
}
