// The timeline on screen: canvas to scrub on, transport buttons, phases, and which methods are shown.
import { differences } from "../core/ghost.js";
import { phaseAt } from "../core/phases.js";
import { timeScene } from "../core/time_scene.js";
import { percent, seconds, slowdown } from "../core/words.js";
import { drawTimeline, timeAtX, timelineGeometry } from "./draw_timeline.js";
import { el, keyed, measured, write } from "./dom.js";
import { penFor } from "./pen_canvas.js";
import { createChips, createTransport, scrub } from "./transport.js";

// The stage whose colour and hatch the lanes have in a phase.
const STAGE_OF = { probe: "probe", select: "select", pipeline: "recompute" };

export function createTimeline({ dispatch, redraw }) {
  const canvas = el("canvas", { class: "fp-canvas fp-timeline", tabindex: "0", role: "slider", "aria-valuemin": "0" });
  const frame = el("div", { class: "fp-frame fp-time-frame" }, canvas);
  const phases = el("ol", { class: "fp-phases" }), chips = createChips({ dispatch }), transport = createTransport({ dispatch });
  const outlined = el("p", { class: "fp-ghost" });
  const node = el("section", { class: "fp-panel fp-time-panel" }, el("div", { class: "fp-time-head" }, ...transport.nodes, phases), frame, outlined, chips.node);
  const box = measured(frame, redraw);
  let seen = null, sprites = new Map(), lastKey = "";

  scrub(canvas, dispatch, (x) => seen && timeAtX(seen, x));

  const drawPhases = keyed(phases, (list, say, locale) => list.map((phase, i) => {
    const took = phase.before_s === undefined ? phase.end_s - phase.start_s : phase.before_s;
    const press = () => dispatch({ type: "seek", time: phase.start_s + (phase.before_s === undefined ? Math.min(1e-4, took / 2) : 0) });
    return el("li", { data: { phase: phase.id } }, el("button", { type: "button", class: "fp-phase", on: { click: press } },
      STAGE_OF[phase.id] && el("span", { class: `fp-swatch fp-stage-${STAGE_OF[phase.id]}` }), el("b", { text: `${i + 1} ${say(`phase_${phase.id}`)}` }), el("span", { text: ` ${seconds(took, locale)}${phase.before_s === undefined ? "" : ` ${say("beforehand")}`}` })));
  }));

  function update(model) {
    const { run, method, state, say, size, locale } = model;
    transport.update(model, (speed) => (speed === 1 ? say("real_time") : say("slowed", { times: slowdown(speed, locale) })));
    drawPhases(`${run.id} ${method.name} ${say.lang}`, model.phases, say, locale);
    const now = phaseAt(model.phases, state.time);
    for (const item of phases.children) {
      if (item.dataset.phase === now) item.setAttribute("aria-current", "step"); else item.removeAttribute("aria-current");
    }
    chips.update(model);
    outlined.hidden = !model.ghost;
    write(outlined, `${ghostWords(model)} ${say("ghost_key")}`);
    const { w } = box;
    if (w < 40) return;
    const key = `${run.id} ${modeOf(model)} ${state.methods} ${method.name} ${w} ${size} ${model.theme} ${say.lang}`;
    if (key !== lastKey) {
      lastKey = key;
      sprites = new Map();
      seen = lanesIn(w, size, model);
      frame.style.height = `${Math.ceil(seen.h)}px`;
    }
    paintLanes(penFor(canvas, w, Math.ceil(seen.h), sprites), seen, model);
    canvas.setAttribute("aria-label", say("timeline_label"));
    canvas.setAttribute("aria-valuemax", seen.end_s.toFixed(3));
    canvas.setAttribute("aria-valuenow", state.time.toFixed(3));
    canvas.setAttribute("aria-valuetext", seconds(state.time, locale));
  }
  return { node, update };
}

const modeOf = ({ ghost }) => ghost && ghost.provenance.mode;

// The lanes as they are on screen and in a file, those of the other run of a pair among them.
export const lanesIn = (w, size, { run, state, ghost }) => timelineGeometry(timeScene(run, state.methods, ghost), w, size);
export const paintLanes = (pen, geo, model) => drawTimeline(pen, geo, { t: model.state.time, method: model.method.name, label: model.label, say: model.say, locale: model.locale, ghost: modeOf(model) }, model.colors);

// Which run is outlined, where it was measured, and plainly what keeps the two from being compared; "" without one.
export function ghostWords({ run, ghost, say, locale }) {
  if (!ghost) return "";
  const { mode, model, device, created } = ghost.provenance, names = differences(run, ghost);
  return [say("ghost_line", { which: say(`ghost_${mode}`), source: `${model} · ${device} · ${created}` }), ...(names.length ? names : ["ghost_same"]).map((name) => say(name, { ratio: percent(ghost.ratio, locale) }))].join(" ");
}
