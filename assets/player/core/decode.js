// A packed run (viz/player/pack.py) as arrays the player can look things up in. Field names stay those of the engine's Run,
// so that one word means one thing in both languages. Knows no DOM.

export const FORMAT = "fusescope-player/1";

export const bytesOf = (b64) => Uint8Array.from(atob(b64), (c) => c.charCodeAt(0));

// A copy starts at offset 0, which views of wider numbers need.
export const arrayOf = (Kind, b64) => new Kind(bytesOf(b64).buffer);

export function unpackBits(b64, length) {
  const packed = bytesOf(b64);
  return Uint8Array.from({ length }, (_, i) => (packed[i >> 3] >> (i & 7)) & 1);
}

export function unpackTokens(text, b64) {
  const tokens = [];
  let place = 0, length = 0, shift = 0;
  for (const byte of bytesOf(b64)) {
    length |= (byte & 127) << shift;
    shift += 7;
    if (byte & 128) continue;
    tokens.push(text.slice(place, place + length));
    place += length;
    length = shift = 0;
  }
  return tokens;
}

function unpackSpans(packed, lanes, stages) {
  const start = arrayOf(Float64Array, packed.start_s), end = arrayOf(Float64Array, packed.end_s);
  return packed.layer.map((layer, i) => ({
    lane: lanes[packed.lane[i]], stage: stages[packed.stage[i]], layer, start_s: start[i], end_s: end[i], size_bytes: packed.size_bytes[i],
  }));
}

function rankingOf(packed, scores, systemLen) {
  if (packed.ranking) return arrayOf(Uint32Array, packed.ranking);
  if (!packed.ranking_is_scores) return null;
  return Uint32Array.from(scores.keys()).sort((a, b) => scores[b] - scores[a] || a - b).map((i) => i + systemLen);
}

function decodeMethod(packed, run) {
  const scores = packed.scores ? arrayOf(Float32Array, packed.scores) : null;
  const ranking = rankingOf(packed, scores, run.system_len);
  const ranks = ranking ? new Uint32Array(run.num_tokens) : null;
  if (ranking) ranking.forEach((position, i) => { ranks[position] = i + 1; });
  return {
    ...packed, scores, ranking, ranks,
    rows: unpackBits(packed.rows, run.num_tokens),
    anchors: packed.anchors ? unpackBits(packed.anchors, run.num_tokens) : null,
    spans: unpackSpans(packed.spans, run.lanes, run.stages),
    kv_distance: packed.kv_distance ? arrayOf(Float32Array, packed.kv_distance) : null,
  };
}

export function decodeRun(packed) {
  if (!packed || packed.format !== FORMAT) throw new Error(`not a run of the version ${FORMAT}`);
  const { text, token_lens, methods, ...rest } = packed;
  const run = { ...rest, tokens: unpackTokens(text, token_lens), num_doc: packed.question_start - packed.system_len };
  run.methods = methods.map((method) => decodeMethod(method, run));
  return run;
}

export const methodOf = (run, name) => run.methods.find((method) => method.name === name) || null;

// The chunk a position stands in, with its number counted from 1, or null.
export function chunkAt(run, position) {
  const index = run.chunks.findIndex((chunk) => chunk.start <= position && position < chunk.stop);
  return index < 0 ? null : { ...run.chunks[index], number: index + 1 };
}
