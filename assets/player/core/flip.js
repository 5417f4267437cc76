// Two questions over the same chunks: which document tokens a method recomputes only for the one shown (A), for both, only for B. Knows no DOM.
import { countDoc, rowsAt } from "./budget.js";
import { methodOf } from "./decode.js";

// `other` is the run of question B. Null where the choices cannot be set side by side: another method, other documents, another model.
export function flipOf(run, other, name, ratio) {
  const a = methodOf(run, name), b = other && methodOf(other, name);
  if (!a || !b || !sameDocuments(run, other)) return null;
  const ofA = rowsAt(run, a, ratio), ofB = rowsAt(other, b, ratio), masks = [0, 1, 2].map(() => new Uint8Array(run.num_tokens));
  for (let p = run.system_len; p < run.question_start; p++) if (ofA[p] || ofB[p]) masks[ofA[p] && ofB[p] ? 1 : ofA[p] ? 0 : 2][p] = 1;
  return { masks, counts: masks.map((mask) => countDoc(run, mask)), question: other.question, mode: other.provenance.mode };
}

export function sameDocuments(run, other) {
  if (run.system_len !== other.system_len || run.question_start !== other.question_start || run.provenance.model !== other.provenance.model) return false;
  for (let p = run.system_len; p < run.question_start; p++) if (run.tokens[p] !== other.tokens[p]) return false;
  return true;
}
