// Packed cache runs of one load (viz/player/pack_cache.py) as arrays to look things up in. Field names stay those of the engine's CacheRun.
// Knows no DOM.
import { arrayOf, bytesOf } from "./decode.js";

export const FILM_FORMAT = "fusescope-cache-player/1";

// Whole numbers as differences, each with how often it repeats: two numbers of seven bits a byte, low ones first.
export function unpackInts(b64) {
  const bytes = bytesOf(b64), values = [];
  let at = 0, value = 0;
  const next = () => {
    let number = 0, scale = 1;
    do { number += (bytes[at] & 127) * scale; scale *= 128; } while (bytes[at++] & 128);
    return number;
  };
  while (at < bytes.length) {
    const code = next(), step = code % 2 ? -(code + 1) / 2 : code / 2;
    for (let repeats = next(); repeats >= 0; repeats--) values.push((value += step));
  }
  return Int32Array.from(values);
}

const READERS = { i: unpackInts, f: (b64) => arrayOf(Float32Array, b64), d: (b64) => arrayOf(Float64Array, b64) };
const columns = (packed) => Object.fromEntries(Object.entries(packed).map(([name, text]) => [name, text && READERS[text[0]](text.slice(1))]));

// sums[i] is over the first i values.
const sumsOf = (values) => {
  const sums = new Float64Array(values.length + 1);
  values.forEach((value, i) => { sums[i + 1] = sums[i] + value; });
  return sums;
};

function decodePolicy(packed, film) {
  const log = columns(packed.requests), evictions = columns(packed.evictions), snapshots = columns(packed.snapshots), { time_s } = film.requests;
  const { request, suffered } = evictions, starts = new Int32Array(film.num_tokens + 1), regrets = new Int32Array(film.num_tokens);
  request.forEach((at, e) => { starts[at + 1]++; regrets[at] += evictions.regret[e]; });
  for (let i = 0; i < film.num_tokens; i++) starts[i + 1] += starts[i];
  // Times that follow from those of the requests are not sent.
  evictions.idle_s ??= Float32Array.from(request, (at, e) => time_s[at] - time_s[evictions.last[e]]);
  evictions.early_s ??= Float32Array.from(request, (at, e) => (suffered[e] < 0 ? 0 : time_s[suffered[e]] - time_s[at]));
  const hit_sums = sumsOf(log.hit_tokens), warm = [1, 0];
  // Lowest and highest rate so far, without the first tenth of the requests, in which every cache is cold.
  for (let i = Math.floor(starts.length / 10) + 1; i < starts.length; i++) {
    const rate = hit_sums[i] / Math.max(1, film.prompt_sums[i]);
    warm[0] = Math.min(warm[0], rate);
    warm[1] = Math.max(warm[1], rate);
  }
  return { ...packed, name: packed.policy, requests: log, evictions, snapshots, starts, regrets, hit_sums, warm, block_sums: sumsOf(log.hit_blocks), regret_sums: sumsOf(regrets) };
}

// `num_tokens` is what the axis counts: requests.
export function decodeFilm(packed) {
  const requests = columns(packed.requests), num = requests.time_s.length;
  const film = { ...packed, tab: "evict", ratio: null, num_layers: 0, num_tokens: num, requests, prompt_sums: sumsOf(requests.prompt_tokens), limit_sums: packed.limit ? sumsOf(READERS.i(packed.limit.slice(1))) : null, asked_sums: sumsOf(requests.prompt_blocks) };
  film.methods = packed.methods.map((method) => decodePolicy(method, film));
  return film;
}
