// What both kinds of film have: play, step, speed and scrubbing, which methods are shown, which one is looked at.
import { SPEEDS } from "../core/state.js";
import { arrows, button, el, keyed, write } from "./dom.js";

export function createTransport({ dispatch }) {
  const row = el("div", { class: "fp-transport" }), pace = el("span", { class: "fp-pace", "aria-live": "polite" });
  const draw = keyed(row, ({ playing, speed }, say, paceOf) => {
    const speeds = el("select", { class: "fp-select", "aria-label": say("speed"), on: { change: (event) => dispatch({ type: "speed", speed: Number(event.target.value) }) } });
    speeds.append(...SPEEDS.map((value) => el("option", { value: String(value), text: paceOf(value), selected: value === speed })));
    return [
      button(playing ? "❚❚" : "▶", () => dispatch({ type: "play" }), { class: "fp-button fp-play", "aria-label": playing ? say("pause") : say("play") }),
      button("❮", () => dispatch({ type: "step", by: -1 }), { "aria-label": say("step_back") }),
      button("❯", () => dispatch({ type: "step", by: 1 }), { "aria-label": say("step_on") }),
      speeds,
    ];
  });
  return {
    nodes: [row, pace],
    // `paceOf`: how a speed compares with what was measured, in words.
    update({ run, state, say }, paceOf) {
      draw(`${run.id} ${state.playing} ${state.speed} ${say.lang}`, state, say, paceOf);
      write(pace, state.playing ? paceOf(state.speed) : "");
    },
  };
}

export function createChips({ dispatch }) {
  const node = el("div", { class: "fp-chips", role: "group" });
  const draw = keyed(node, ({ run, state, colors, label }) => run.methods.map(({ name }) => {
    const on = state.methods.includes(name);
    return el("button", { type: "button", class: "fp-chip", "aria-pressed": String(on), style: { "--method": colors.methods[name] }, text: `${on ? "✓ " : ""}${label(name)}`, on: { click: () => dispatch({ type: "toggleMethod", method: name }) } });
  }));
  return {
    node,
    update(model) {
      draw(`${model.run.id} ${model.state.methods} ${model.say.lang} ${model.theme}`, model);
      node.setAttribute("aria-label", model.say("methods_shown"));
    },
  };
}

export function createTabs({ dispatch }) {
  const node = el("div", { class: "fp-tabs", role: "group" });
  const draw = keyed(node, ({ state, method, label, colors }) => state.methods.map((name) => el("button", {
    type: "button", class: "fp-tab", "aria-pressed": String(name === method.name), text: label(name), style: { "--method": colors.methods[name] }, on: { click: () => dispatch({ type: "method", method: name }) },
  })));
  return { node, update: (model) => draw(`${model.run.id} ${model.state.methods} ${model.method.name} ${model.say.lang} ${model.theme}`, model) };
}

// Pointer and arrow keys on a picture move the playhead. `timeOf(x)`: the time at a place, null before there is a picture.
export function scrub(canvas, dispatch, timeOf) {
  const seek = (event) => timeOf(event.offsetX) !== null && dispatch({ type: "seek", time: timeOf(event.offsetX) });
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); dispatch({ type: "pause" }); seek(event); });
  canvas.addEventListener("pointermove", (event) => event.buttons && seek(event));
  arrows(canvas, { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }, (by) => dispatch({ type: "step", by }));
}
