// Keys to actions. A clicker sends PageDown, PageUp and B or a full stop; a keyboard the rest. Knows no DOM beyond the event's fields.

const WITHOUT_TOUR = {
  k: { type: "play" }, "]": { type: "step", by: 1 }, "[": { type: "step", by: -1 }, p: { type: "present" }, m: { type: "nextMethod" }, h: { type: "contrast" },
  f: { type: "fullscreen" }, "?": { type: "help" }, l: { type: "live" }, t: { type: "tour" }, n: { type: "notes" }, v: { type: "nextPanel" }, escape: { type: "escape" },
  "+": { type: "zoomIn" }, "=": { type: "zoomIn" }, "-": { type: "zoomOut" }, "<": { type: "faster", by: -1 }, ">": { type: "faster", by: 1 },
};
const IN_TOUR = {
  pagedown: { type: "moveScene", by: 1 }, arrowright: { type: "moveScene", by: 1 }, " ": { type: "moveScene", by: 1 },
  pageup: { type: "moveScene", by: -1 }, arrowleft: { type: "moveScene", by: -1 },
  home: { type: "scene", scene: 1 }, b: { type: "blank" }, ".": { type: "blank" },
};

const FIELDS = new Set(["INPUT", "TEXTAREA", "SELECT"]);

// Typing, or working a control that uses keys itself.
export function isTyping(target) {
  if (!target) return false;
  return FIELDS.has(target.tagName) || target.isContentEditable === true;
}

// A button or link takes blank and Enter for itself.
const pressesItself = (target, key) => Boolean(target) && (target.tagName === "BUTTON" || target.tagName === "A" || target.tagName === "SUMMARY") && (key === " " || key === "enter");

// The action of a key press, or null. `state` says whether a tour or a talk is on; only then are PageDown and the arrows ours.
export function actionOf(event, state) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return null;
  const key = event.key.toLowerCase();
  if (pressesItself(event.target, key)) return null;
  if (/^[0-9]$/u.test(key)) return { type: "scene", scene: key === "0" ? 10 : Number(key) };
  if ((state.present || state.scene > 0) && key in IN_TOUR) return IN_TOUR[key];
  if (key === "b" && state.blank) return IN_TOUR.b;
  return WITHOUT_TOUR[key] || null;
}

// What the help lists: [keys, name of the text].
export const HELP = [
  ["PageDown → ␣", "key_next"], ["PageUp ←", "key_back"], ["1–9, 0", "key_scene"], ["Home", "key_first"], ["B .", "key_blank"], ["T", "key_tour"], ["P", "key_present"],
  ["N", "key_notes"], ["K", "key_play"], ["[ ]", "key_step"], ["< >", "key_speed"], ["M", "key_method"], ["V", "key_panel"], ["+ −", "key_zoom"], ["L", "key_live"], ["H", "key_contrast"],
  ["F", "key_full"], ["?", "key_help"], ["Esc", "key_escape"],
];
