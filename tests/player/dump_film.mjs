// Reads a packed film from standard input and writes what the player decodes and counts of it as JSON, for tests in another language.
import { readFileSync } from "node:fs";
import { filmFacts, halfRate, leaving, momentAt, rateOf } from "../../assets/player/core/cache_facts.js";
import { decode } from "../../assets/player/core/kinds.js";

const film = decode(JSON.parse(readFileSync(0, "utf8"))), every = [...Array(film.num_tokens).keys()];
const plain = (columns) => Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, Array.from(values)]));
process.stdout.write(JSON.stringify({
  requests: plain(film.requests), limit: film.limit_sums && Array.from(film.limit_sums), facts: filmFacts(film, "en"), provenance: film.provenance, setting: [film.workload, film.seed, film.capacity_blocks, film.block_tokens, film.num_blocks],
  methods: film.methods.map((method) => ({
    name: method.name, requests: plain(method.requests), evictions: plain(method.evictions), snapshots: plain(method.snapshots), weight_names: method.weight_names,
    rates: every.map((i) => rateOf(film, method, i)), half: halfRate(film, method), left: every.map((i) => leaving(method, i).reduce((sum, group) => sum + group.num, 0)), regrets: Array.from(method.regret_sums), moments: every.map((i) => momentAt(method, i)),
  })),
}));
