// The table of methods as CSV, with where the numbers come from in every row. Knows no DOM.
import { halfRate, rateOf } from "./cache_facts.js";

const COLUMNS = [
  ["method", (m) => m.name], ["ratio", (m, run) => (m.ranking ? run.ratio : "")], ["recomputed_rows", (m) => m.rows.reduce((sum, bit) => sum + bit, 0)],
  ["ttft_s", (m) => m.ttft_s], ["num_repeats", (m) => m.ttft_repeats_s.length], ["ttft_min_s", (m) => Math.min(...m.ttft_repeats_s)], ["ttft_max_s", (m) => Math.max(...m.ttft_repeats_s)],
  ...["probe", "select", "load_wait", "recompute", "head"].map((part) => [`${part}_s`, (m) => m.parts_s[part]]),
  ["loaded_bytes", (m) => m.loaded_bytes],
  ...["kl_to_full", "gold_nll", "rouge_l", "f1", "contains_gold", "first_diverging_token", "span_recall"].map((name) => [name, (m) => m.quality[name]]),
  ["answer", (m) => m.answer],
  ...["mode", "model", "device", "created"].map((name) => [name, (_, run) => run.provenance[name]]),
];

const last = (film) => film.num_tokens - 1;
const FILM_COLUMNS = [
  ["policy", (m) => m.name], ...["workload", "seed", "capacity_blocks", "block_tokens"].map((name) => [name, (_, film) => film[name]]), ["num_requests", (_, film) => film.num_tokens],
  ["hit_tokens", (m, film) => rateOf(film, m, last(film))], ["hit_tokens_second_half", (m, film) => halfRate(film, m)], ["hit_blocks", (m, film) => m.block_sums[film.num_tokens] / film.asked_sums[film.num_tokens]],
  ["num_evicted", (m) => m.evictions.block.length], ["num_regretted", (m, film) => (film.limit_sums ? m.regret_sums[film.num_tokens] : null)], ...["elapsed_s", "predictor", "mode", "created", "commit"].map((name) => [name, (m) => m[name]]),
];

// A cell that begins with =, +, - or @ would be a formula to a spreadsheet; numbers are left as they are.
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = /^[=+\-@\t\r]/u.test(value) ? `'${value}` : value;
  return /[",\n\r]/u.test(text) ? `"${text.replace(/"/gu, '""')}"` : text;
}

export function methodsCsv(run) {
  const columns = run.tab ? FILM_COLUMNS : COLUMNS, rows = run.methods.map((method) => columns.map(([, value]) => cell(value(method, run))).join(","));
  return [columns.map(([name]) => name).join(","), ...rows].join("\r\n") + "\r\n";
}
