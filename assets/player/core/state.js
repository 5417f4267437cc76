// What the viewer is looking at, as one frozen object, and how actions change it. Knows no DOM and no run but its limits.

export const SPEEDS = [1, 0.5, 0.25, 0.1, 0.05, 0.02];
export const PANELS = ["map", "answers", "text", "fidelity"];
export const FEWEST_SHOWN = 24;

// `scene` counts from 1; 0 is no tour. `zoom` is null for the whole prompt or [from, to).
export const START = Object.freeze({
  tab: "fuse", scenario: "", method: "", methods: Object.freeze([]), ratio: null, layer: null, token: null, time: 0, zoom: null,
  panel: "map", present: false, scene: 0, contrast: false, theme: "", lang: "", speed: 0.25,
  playing: false, blank: false, help: false,
});

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const change = (state, parts) => Object.freeze({ ...state, ...parts });

// `limits`: {end_s (of the methods shown), longest_s (of all), names (methods of the run, in order), numTokens, numLayers, numScenes}.
export function reduce(state, action, limits) {
  const handler = HANDLERS[action.type];
  if (!handler) throw new Error(`unknown action ${action.type}; known ones are: ${Object.keys(HANDLERS).join(", ")}`);
  return change(state, handler(state, action, limits));
}

const HANDLERS = {
  set: (state, { values }, limits) => legal(values, limits),
  seek: (state, { time }, limits) => ({ time: clamp(time, 0, limits.end_s) }),
  tick: (state, { time }, limits) => (time >= limits.end_s ? { time: limits.end_s, playing: false } : { time }),
  play: (state, _, limits) => (state.playing ? { playing: false } : { playing: true, time: state.time >= limits.end_s ? 0 : state.time }),
  pause: () => ({ playing: false }),
  speed: (state, { speed }) => ({ speed: SPEEDS.includes(speed) ? speed : state.speed }),
  faster: (state, { by }) => ({ speed: SPEEDS[clamp(SPEEDS.indexOf(state.speed) - by, 0, SPEEDS.length - 1)] }),
  ratio: (state, { ratio }) => ({ ratio: clamp(Math.round(ratio * 1000) / 1000, 0, 1) }),
  token: (state, { token }, limits) => ({ token: token === null ? null : clamp(token, 0, limits.numTokens - 1) }),
  pick: (state, { token, layer }, limits) => ({ ...HANDLERS.token(state, { token }, limits), layer }),
  moveLayer: (state, { by }, limits) => ({ layer: clamp((state.layer ?? -1) + by, 0, limits.numLayers - 1) }),
  moveToken: (state, { by }, limits) => ({ token: clamp((state.token ?? -1) + by, 0, limits.numTokens - 1) }),
  method: (state, { method }, limits) => (limits.names.includes(method) ? { method, methods: withName(state.methods, method, limits) } : {}),
  nextMethod: (state, _, limits) => {
    const names = state.methods.length ? state.methods : limits.names;
    return { method: names[(names.indexOf(state.method) + 1) % names.length] };
  },
  toggleMethod: (state, { method }, limits) => {
    const on = state.methods.includes(method);
    if (on && state.methods.length === 1) return {};
    const methods = on ? state.methods.filter((name) => name !== method) : withName(state.methods, method, limits);
    return { methods, method: methods.includes(state.method) ? state.method : methods[methods.length - 1] };
  },
  zoom: (state, { factor, at }, limits) => ({ zoom: zoomed(state.zoom, factor, at, limits.numTokens) }),
  pan: (state, { by }, limits) => ({ zoom: state.zoom && moved(state.zoom, by, limits.numTokens) }),
  window: (state, { from, to }, limits) => ({ zoom: zoomed([from, to], 1, (from + to) / 2, limits.numTokens) }),
  panel: (state, { panel }) => (PANELS.includes(panel) ? { panel } : {}),
  nextPanel: (state) => ({ panel: PANELS[(PANELS.indexOf(state.panel) + 1) % PANELS.length] }),
  present: (state) => ({ present: !state.present }),
  contrast: (state) => ({ contrast: !state.contrast }),
  theme: (state, { theme }) => ({ theme }),
  lang: (state, { lang }) => ({ lang }),
  blank: (state) => ({ blank: !state.blank }),
  help: (state) => ({ help: !state.help }),
  escape: (state) => (state.help ? { help: false } : state.blank ? { blank: false } : { present: false, scene: 0 }),
  scene: (state, { scene }, limits) => ({ scene: clamp(scene, 0, limits.numScenes), blank: false }),
};

function withName(methods, name, limits) {
  return methods.includes(name) ? methods : limits.names.filter((other) => other === name || methods.includes(other));
}

function zoomed(zoom, factor, at, numTokens) {
  const [from, to] = zoom || [0, numTokens];
  const width = clamp(Math.round((to - from) * factor), Math.min(FEWEST_SHOWN, numTokens), numTokens);
  if (width >= numTokens) return null;
  const start = clamp(Math.round(at - ((at - from) / (to - from)) * width), 0, numTokens - width);
  return [start, start + width];
}

function moved([from, to], by, numTokens) {
  const start = clamp(from + Math.round(by * (to - from)), 0, numTokens - (to - from));
  return [start, start + to - from];
}

// Values from outside (a link, a scene) as far as the run has them; the rest is dropped, the defaults stay.
export function legal(values, limits) {
  const checks = {
    tab: (v) => v === (limits.tab || "fuse"), scenario: (v) => typeof v === "string",
    method: (v) => limits.names.includes(v), methods: (v) => Array.isArray(v) && v.length > 0 && v.every((name) => limits.names.includes(name)),
    ratio: (v) => v >= 0 && v <= 1, layer: (v) => v === null || (Number.isInteger(v) && v >= 0 && v < limits.numLayers),
    token: (v) => v === null || (Number.isInteger(v) && v >= 0 && v < limits.numTokens), time: (v) => v >= 0 && v <= limits.longest_s + 1e-3,
    zoom: (v) => v === null || (v[0] >= 0 && v[1] <= limits.numTokens && v[0] < v[1]), panel: (v) => PANELS.includes(v),
    scene: (v) => Number.isInteger(v) && v >= 0 && v <= limits.numScenes, speed: (v) => SPEEDS.includes(v),
    theme: (v) => ["", "light", "dark"].includes(v), lang: (v) => typeof v === "string",
    present: isFlag, contrast: isFlag, playing: isFlag, blank: isFlag, help: isFlag,
  };
  return Object.fromEntries(Object.entries(values).filter(([key, value]) => key in checks && checks[key](value)));
}

const isFlag = (value) => typeof value === "boolean";
