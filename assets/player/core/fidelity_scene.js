// Distance to full prefill: keys and values per layer, the next token's distribution, the first word that differs. Knows no DOM.
import { methodOf } from "./decode.js";

// Methods with any distance; `top` is the largest per-layer distance of those shown, so that all share one scale.
export function fidelityScene(run, names) {
  const rows = names.map((name) => methodOf(run, name)).filter((method) => method && method.name !== "full").map((method) => ({
    name: method.name,
    keys: method.kv_distance ? Array.from({ length: run.num_layers }, (_, layer) => method.kv_distance[layer * 2]) : null,
    values: method.kv_distance ? Array.from({ length: run.num_layers }, (_, layer) => method.kv_distance[layer * 2 + 1]) : null,
    kl: method.quality.kl_to_full, diverges: method.quality.first_diverging_token,
  }));
  return { rows, numLayers: run.num_layers, top: Math.max(1e-9, ...rows.flatMap((row) => [...(row.keys || []), ...(row.values || [])])) };
}
