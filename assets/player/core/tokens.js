// What is known of one token of the prompt, and of the columns of a picture over it. Knows no DOM.
import { budget, isSelective, rowsAt } from "./budget.js";
import { chunkAt } from "./decode.js";

export function partOf(run, position) {
  if (position < run.system_len) return "system";
  return position >= run.question_start ? "question" : "document";
}

// Score, rank and cut-off of a token under one method at a ratio, and which methods chose it.
export function tokenFacts(run, method, ratio, position) {
  const part = partOf(run, position), doc = part === "document";
  const cut = budget(ratio, run.num_doc);
  return {
    position, part,
    text: run.tokens[position],
    chunk: chunkAt(run, position),
    recomputed: rowsAt(run, method, ratio)[position] === 1,
    score: doc && method.scores ? method.scores[position - run.system_len] : null,
    rank: doc && method.ranks ? method.ranks[position] : null,
    cut: method.ranking ? cut : null,
    anchor: Boolean(method.anchors && method.anchors[position]),
    answer: run.answer_spans.some(([start, stop]) => start <= position && position < stop),
    rivals: doc ? run.methods.filter((other) => isSelective(run, other)).map((other) => ({
      name: other.name, chose: rowsAt(run, other, ratio)[position] === 1, rank: other.ranks ? other.ranks[position] : null,
    })) : [],
  };
}

// The score of the last token that fits the budget, or null without scores or budget.
export function cutoffScore(run, method, ratio) {
  const cut = budget(ratio, run.num_doc);
  return method.scores && method.ranking && cut ? method.scores[method.ranking[cut - 1] - run.system_len] : null;
}

// The best-ranked token that is a word: line ends rank high too and say nothing. Null where the method does not rank.
export const bestWord = (run, method) => (method && method.ranking && method.ranking.find((position) => /[\p{L}\p{N}]{2}/u.test(run.tokens[position]))) ?? null;

// The best-ranked tokens, for people who read instead of look.
export function topTokens(run, method, ratio, count) {
  if (!method.ranking) return [];
  return [...method.ranking.subarray(0, count)].map((position) => tokenFacts(run, method, ratio, position));
}

// Columns of about a pixel over positions [from, to): share of tokens in `mask`, as Float32 [columns].
export function columnShares(mask, from, to, columns) {
  return columnsOf(from, to, columns, (start, stop) => {
    let count = 0;
    for (let i = start; i < stop; i++) count += mask[i];
    return count / (stop - start);
  });
}

// The highest value per column of `values`, whose first entry is that of position `offset`; NaN where a column has none.
export function columnMaxima(values, offset, from, to, columns) {
  return columnsOf(from, to, columns, (start, stop) => {
    let top = NaN;
    for (let i = Math.max(start, offset); i < Math.min(stop, offset + values.length); i++) if (!(values[i - offset] <= top)) top = values[i - offset];
    return top;
  });
}

function columnsOf(from, to, columns, valueOf) {
  const result = new Float32Array(columns), per = (to - from) / columns;
  for (let c = 0; c < columns; c++) {
    const start = Math.floor(from + c * per);
    result[c] = valueOf(start, Math.min(to, Math.max(start + 1, Math.floor(from + (c + 1) * per))));
  }
  return result;
}
