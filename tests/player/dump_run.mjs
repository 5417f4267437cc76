// Reads a packed run from standard input and writes what the player decodes of it, as plain JSON.
import { readFileSync } from "node:fs";
import { rowsAt } from "../../assets/player/core/budget.js";
import { decodeRun } from "../../assets/player/core/decode.js";

const run = decodeRun(JSON.parse(readFileSync(0, "utf8")));
const positions = (mask) => (mask ? [...mask.keys()].filter((i) => mask[i]) : null);
const plain = (array) => (array ? [...array] : null);

process.stdout.write(JSON.stringify({
  ...run,
  methods: run.methods.map((m) => ({
    ...m, rows: positions(m.rows), anchors: positions(m.anchors), ranking: plain(m.ranking), ranks: plain(m.ranks), scores: plain(m.scores), kv_distance: plain(m.kv_distance),
    at: Object.fromEntries([0, 0.05, 0.123, 0.5, 1].map((ratio) => [ratio, positions(rowsAt(run, m, ratio))])),
  })),
}));
