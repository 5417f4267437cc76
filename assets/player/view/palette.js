// Colours for the pens, read from the CSS variables that are generated from the page's palette (viz/player/look.py).

const STATES = ["loaded", "recomputed", "exact", "system", "question", "anchor", "answer"];
const SURFACES = ["panel", "ink", "muted", "line", "band", "band-odd", "waiting", "faint", "playhead"];

export function readPalette(root, looks) {
  const style = getComputedStyle(root), read = (name) => style.getPropertyValue(`--fp-${name}`).trim() || "#888888";
  const camel = (name) => name.replace(/-(\w)/gu, (_, letter) => letter.toUpperCase());
  return {
    ...Object.fromEntries([...STATES, ...SURFACES].map((name) => [camel(name), read(name)])),
    flip: [read("flip-a"), read("recomputed"), read("flip-b")],
    stages: Object.fromEntries(Object.keys(looks.hatches).map((stage) => [stage, read(`stage-${stage}`)])),
    hatches: looks.hatches, dashes: looks.dashes,
    bands: Object.fromEntries(Object.entries(looks.bands).map(([name, hatch]) => [name, { color: read(`b-${name}`), hatch }])),
    methods: Object.fromEntries(Object.entries(looks.methods).map(([name, look]) => [name, look.color])),
  };
}
