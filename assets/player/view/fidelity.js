// The fidelity strips on screen.
import { fidelityScene } from "../core/fidelity_scene.js";
import { drawFidelity, fidelityGeometry } from "./draw_fidelity.js";
import { el, measured, write } from "./dom.js";
import { penFor } from "./pen_canvas.js";

export function createFidelity({ redraw }) {
  const title = el("h2", { class: "fp-title" }), note = el("span", { class: "fp-note" }), canvas = el("canvas", { class: "fp-canvas", role: "img" }), frame = el("div", { class: "fp-frame" }, canvas);
  const node = el("section", { class: "fp-panel fp-fidelity-panel" }, el("div", { class: "fp-panel-head" }, title, note), frame);
  const box = measured(frame, redraw);
  let lastKey = "";
  return {
    node,
    update(model) {
      const { run, state, say, colors, size, locale, method } = model, { w } = box;
      write(title, say("fidelity_title"));
      write(note, say("fidelity_note"));
      const room = state.present ? model.room() : 0;
      const key = `${run.id} ${state.methods} ${method.name} ${w} ${size} ${model.theme} ${say.lang} ${room}`;
      if (w < 40 || key === lastKey) return;
      lastKey = key;
      const scene = fidelityScene(run, state.methods);
      const geo = fidelityGeometry(scene, w, size, room);
      frame.style.height = `${Math.ceil(geo.h)}px`;
      drawFidelity(penFor(canvas, w, Math.ceil(geo.h)), scene, geo, { label: model.label, say, locale, method: method.name }, colors);
      canvas.setAttribute("aria-label", scene.rows.map((row) => `${model.label(row.name)}: KL ${row.kl === null ? "–" : row.kl.toFixed(3)}`).join("; "));
    },
  };
}
