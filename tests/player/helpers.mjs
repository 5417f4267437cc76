// A small run packed as viz/player/pack.py packs one, written out by hand: two chunks, three methods, four layers.

const b64 = (bytes) => Buffer.from(bytes).toString("base64");
const floats = (Kind, values) => b64(new Uint8Array(new Kind(values).buffer));

export const bits = (positions, length) => {
  const bytes = new Uint8Array(Math.ceil(length / 8));
  for (const p of positions) bytes[p >> 3] |= 1 << (p & 7);
  return b64(bytes);
};

const STAGES = ["probe", "select", "load", "load_wait", "recompute", "correct", "head", "decode"];
const LANES = ["disk", "copy", "device"];

const packSpans = (spans) => ({
  lane: spans.map((s) => LANES.indexOf(s[0])), stage: spans.map((s) => STAGES.indexOf(s[1])), layer: spans.map((s) => s[2]),
  start_s: floats(Float64Array, spans.map((s) => s[3])), end_s: floats(Float64Array, spans.map((s) => s[4])), size_bytes: spans.map((s) => s[5] || 0),
});

export const TOKENS = ["Sys", " tem", "The", " clés", " 🧩x", "", " lock", "\n", "Why", "?"];
const QUALITY = { rouge_l: 0.5, f1: 0.5, gold_nll: 1, kl_to_full: 0.25, first_diverging_token: 1, span_recall: 0.5, contains_gold: false, exact_match: false };

const method = (name, parts) => ({
  name, params: {}, rows: bits([8, 9], 10), ranking: null, ranking_is_scores: false, scores: null, critical_layers: [], anchors: null, spans: packSpans([]), ttft_s: 0.5,
  ttft_repeats_s: [0.5, 0.4, 0.6], parts_s: { probe: 0, select: 0, load_wait: 0, recompute: 0.5, head: 0 }, loaded_bytes: 0, num_cache_hits: 6, answer: "=It is red.",
  num_answer_tokens: 4, token_times_s: [0, 0.1, 0.2, 0.3], quality: QUALITY, kv_distance: null, chunk_context: "system", layer_rows: null, ...parts,
});

export const packedRun = () => ({
  format: "fusescope-player/1", lanes: LANES, stages: STAGES,
  provenance: { mode: "replay", created: "2026-01-02 03:04 UTC", commit: "abc", model: "Tiny", revision: "r", weights: "w", dtype: "float32", device: "CPU", num_threads: 2, kernels: "torch", disk_mb_per_s: 100, page_cache: "not dropped", versions: {} },
  scenario: "lock", question: "Why?", gold_answers: ["blue"], ratio: 0.5, chunk_context: "system", max_new_tokens: 8, temperature: 0, seed: 0, num_layers: 4, num_tokens: 10,
  text: TOKENS.join(""), token_lens: b64(TOKENS.map((t) => t.length)), system_len: 2, question_start: 8, question_span: [8, 10], answer_spans: [[3, 5]],
  chunks: [
    { chunk_id: "a", title: "First", cache_hash: "h1", start: 2, stop: 5, relevance: 0.9, source: "disk", size_bytes: 600, precompute_s: 0.25 },
    { chunk_id: "b", title: "Second", cache_hash: "h2", start: 5, stop: 8, relevance: null, source: "computed", size_bytes: 400, precompute_s: 0.5 },
  ],
  methods: [
    method("full", {
      rows: bits([...Array(10).keys()], 10), ttft_s: 1, answer: "It is blue.", quality: { ...QUALITY, kl_to_full: 0, first_diverging_token: null, contains_gold: true },
      spans: packSpans([0, 1, 2, 3].map((l) => ["device", "recompute", l, l * 0.2, l * 0.2 + 0.2]).concat([["device", "head", -1, 0.8, 1]])),
    }),
    method("qcfuse", {
      rows: bits([3, 6, 7, 8, 9], 10), scores: floats(Float32Array, [0.1, 0.5, 0.1, 0.2, 0.75, 0.5]), ranking_is_scores: true, critical_layers: [2], anchors: bits([0, 2, 5], 10),
      kv_distance: floats(Float32Array, [0, 0, 0.1, 0.2, 0.2, 0.3, 0.3, 0.4]), loaded_bytes: 3000,
      spans: packSpans([
        ["device", "probe", -1, 0, 0.05], ["disk", "load", 2, 0.05, 0.06, 500], ["device", "select", -1, 0.05, 0.08], ["device", "recompute", 0, 0.08, 0.16],
        ["disk", "load", 1, 0.08, 0.12, 1000], ["disk", "load", 2, 0.12, 0.16, 1000], ["device", "load_wait", 1, 0.16, 0.17], ["device", "recompute", 1, 0.17, 0.25],
        ["disk", "load", 3, 0.2, 0.24, 1000], ["device", "recompute", 2, 0.25, 0.33], ["device", "correct", 2, 0.33, 0.34], ["device", "recompute", 2, 0.34, 0.4],
        ["device", "load_wait", 3, 0.4, 0.42], ["device", "recompute", 3, 0.42, 0.48], ["device", "head", -1, 0.48, 0.5],
      ]),
    }),
    method("epic", { rows: bits([2, 5, 6, 8, 9], 10), ranking: b64(new Uint8Array(new Uint32Array([2, 5, 6, 3, 7, 4]).buffer)), ttft_s: 0.4 }),
  ],
  notices: [],
});
