// What a film of cache runs shows at a request, as numbers. Knows no DOM.
import { methodOf } from "./decode.js";
import * as words from "./words.js";

export const QUEUES = ["evict_first", "structural", "chat", "agent"], KINDS = ["system", "user", "tool_output", "response", "thinking"];
export const MISSES = ["evicted", "changed_prefix", "cold", "shorter"];
// Where each of MISSES stands in the engine's list of causes.
const CAUSES = [1, 2, 0, 3];

export const requestAt = (film, t) => Math.min(film.num_tokens - 1, Math.max(0, Math.floor(t + 1e-6)));

// Share of the prompt tokens found from request `from` to `i`.
export const rateOf = (film, method, i, from = 0) => (method.hit_sums[i + 1] - method.hit_sums[from]) / Math.max(1, film.prompt_sums[i + 1] - film.prompt_sums[from]);
// The second half of the requests, when the cache is warm: what the headline figures are of.
export const halfRate = (film, method) => rateOf(film, method, film.num_tokens - 1, film.num_tokens >> 1);

// Blocks that the limit MIN finds up to a request against those asked for; null where it was not run.
export const limitRate = (film, i) => film.limit_sums && film.limit_sums[i + 1] / Math.max(1, film.asked_sums[i + 1]);

// The last recorded moment that is not after a request, -1 without one.
export const momentAt = ({ snapshots }, i) => snapshots.request.findLastIndex((request) => request <= i);

// Blocks of every queue at a moment; a policy that files nothing has one band. The last one is free space.
export function bandsOf(film, method, moment) {
  const { queues } = method.snapshots, row = [...queues.subarray(moment * 4, moment * 4 + 4)], held = row.reduce((sum, n) => sum + n, 0);
  const bands = hasQueues(method) ? QUEUES.map((name, q) => [name, row[q]]) : [["blocks", held]];
  return [...bands, ["free", film.capacity_blocks - held]];
}

export const hasQueues = ({ snapshots: { queues } }) => queues.some((count, place) => place % 4 && count);

// A request's prompt tokens: found, then missed by cause.
export const partsOf = (method, i) => [["hit", method.requests.hit_tokens[i]], ...MISSES.map((name, k) => [name, method.requests[`missed_${CAUSES[k]}`][i]])];

const SAME = ["kind", "queue", "hits", "idle_s", "suffered", "regret"];

// Blocks that left during a request; neighbours of one fate that left one after another are one group.
export function leaving(method, i) {
  const log = method.evictions, groups = [];
  for (let e = method.starts[i]; e < method.starts[i + 1]; e++) {
    const last = groups[groups.length - 1];
    if (last && Math.abs(log.depth[e] - last.to) === 1 && SAME.every((name) => log[name][e] === last[name])) {
      last.num++;
      last.to = log.depth[e];
    } else groups.push({ num: 1, from: log.depth[e], to: log.depth[e], early_s: log.early_s[e], ...Object.fromEntries(SAME.map((name) => [name, log[name][e]])) });
  }
  return groups;
}

// What the policy had learned of a block's queue and type at the last recorded moment: [[sign, queue or type, value]].
export function learnedOf(method, i, { queue, kind }) {
  const moment = momentAt(method, i), names = method.weight_names;
  return [["α", "alpha", QUEUES[queue]], ["w", "w", KINDS[kind] === "thinking" ? "cot" : KINDS[kind]]].map(([sign, group, name]) => [sign, name, names.indexOf(`${group} ${name}`)])
    .filter(([, , column]) => moment >= 0 && column >= 0).map(([sign, name, column]) => [sign, name, method.snapshots.weights[moment * names.length + column]]);
}

// Learned weights in groups by the first word of their names: [[group, [[name, column]]]].
export function weightGroups(method) {
  const groups = new Map();
  method.weight_names.forEach((name, column) => {
    const [first] = name.split(" "), known = ["alpha", "w", "mu", "sigma", "gamma"].includes(first), key = known ? first : name;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push([known ? name.slice(first.length + 1) : "", column]);
  });
  return [...groups];
}

// "20.7 %", and a difference of two rates in points.
export const rate = (share, locale) => `${words.decimals(100 * share, 1, locale)} %`;
export const points = (difference, locale) => {
  const value = Math.round(1000 * difference) / 10;
  return `${value > 0 ? "+" : value < 0 ? "−" : "±"}${words.decimals(Math.abs(value), 1, locale)}`;
};

export const sourceParts = (film, locale) => ({
  blocks: words.count(film.capacity_blocks, locale), tokens: String(film.block_tokens), share: words.percent(film.capacity_blocks / film.num_blocks, locale),
  requests: words.count(film.num_tokens, locale), seed: String(film.seed), created: film.provenance.created,
});

// One sentence on what a policy has found so far, beside LRU and the limit as far as they are there.
export function filmVerdict(film, method, i, say, locale, label) {
  const said = say("film_found", { method: label(method.name), rate: rate(rateOf(film, method, i), locale) }), others = ["lru", "min"].filter((name) => name !== method.name && methodOf(film, name));
  if (others.length) return `${said}${others.map((name) => `, ${label(name)} ${rate(rateOf(film, methodOf(film, name), i), locale)}`).join("")}.`;
  const limit = limitRate(film, i);
  return limit === null ? `${said}.` : `${said}. ${say("film_limit", { own: rate(method.block_sums[i + 1] / Math.max(1, film.asked_sums[i + 1]), locale), limit: rate(limit, locale) })}`;
}

// The request during which most evictions were regretted.
export const worstOf = ({ regrets }) => regrets.indexOf(regrets.reduce((most, num) => Math.max(most, num), 0));

// Placeholders of sentences about a film, and what they may depend on.
export function filmFacts(film, locale) {
  const facts = { capacity: words.count(film.capacity_blocks, locale), blocks: words.count(film.num_blocks, locale), share: words.percent(film.capacity_blocks / film.num_blocks, locale), requests: words.count(film.num_tokens, locale) };
  for (const method of film.methods) {
    const num = method.evictions.request.length, worst = worstOf(method), lru = methodOf(film, "lru"), half = halfRate(film, method);
    const own = {
      half: rate(half, locale), all: rate(rateOf(film, method, film.num_tokens - 1), locale), evicted: words.count(num, locale), regretted: words.count(method.regret_sums[film.num_tokens], locale), regret: words.percent(method.regret_sums[film.num_tokens] / Math.max(1, num), locale), behind: lru ? words.decimals(100 * Math.abs(half - halfRate(film, lru)), 2, locale) : words.NONE,
      worst: words.count(worst, locale), worst_left: words.count(method.starts[worst + 1] - method.starts[worst], locale), worst_regretted: words.count(method.regrets[worst], locale),
    };
    for (const [name, value] of Object.entries(own)) facts[`${method.name}.${name}`] = value;
  }
  return facts;
}

export function filmConditions(film) {
  const conditions = {};
  for (const one of film.methods) {
    conditions[`${one.name}.run`] = true;
    for (const other of film.methods) conditions[`${one.name}<${other.name}`] = halfRate(film, one) < halfRate(film, other);
  }
  return conditions;
}
