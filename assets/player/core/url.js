// The state as a short, readable query string, and back. Only what differs from the start is written. Knows no DOM.
import { START } from "./state.js";

const text = { write: (v) => v, read: (v) => v };
const number = { write: (v) => String(v), read: (v) => (v.trim() !== "" && Number.isFinite(Number(v)) ? Number(v) : undefined) };
const flag = { write: () => "1", read: (v) => v === "1" };
const list = { write: (v) => v.join(","), read: (v) => v.split(",").filter(Boolean) };
const pair = { write: (v) => v.join("-"), read: (v) => (/^\d+-\d+$/u.test(v) ? v.split("-").map(Number) : undefined) };
// A tenth of a millisecond is finer than anything that can be seen.
const time = { write: (v) => String(Math.round(v * 1e4) / 1e4), read: number.read };

const FIELDS = {
  tab: ["tab", text], scenario: ["sc", text], methods: ["m", list], method: ["look", text], ratio: ["r", number], layer: ["L", number],
  token: ["tok", number], time: ["t", time], zoom: ["z", pair], panel: ["panel", text], scene: ["scene", number], speed: ["speed", number],
  present: ["present", flag], contrast: ["contrast", flag], theme: ["theme", text], lang: ["lang", text],
};

const same = (a, b) => a === b || (Array.isArray(a) && Array.isArray(b) && a.join() === b.join());

// Keys that are not ours stay in the query as they are. Names of methods hold plus signs, which a query string must escape.
export function toQuery(state, others = "") {
  const query = new URLSearchParams(others);
  for (const [key] of Object.values(FIELDS)) query.delete(key);
  for (const [field, [key, form]] of Object.entries(FIELDS)) {
    const value = state[field];
    if (value !== null && !same(value, START[field])) query.append(key, form.write(value));
  }
  return query.toString().replace(/%2C/gu, ",");
}

export function fromQuery(query) {
  const given = new URLSearchParams(query), values = {};
  for (const [field, [key, form]] of Object.entries(FIELDS)) {
    if (!given.has(key)) continue;
    const value = form.read(given.get(key));
    if (value !== undefined) values[field] = value;
  }
  return values;
}

// What a link restores: the state without what only lives while one watches.
export const shared = (state) => Object.fromEntries(Object.keys(FIELDS).map((field) => [field, field === "time" ? Math.round(state.time * 1e4) / 1e4 : state[field]]));
