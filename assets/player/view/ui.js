// Puts the views together, and decides how large letters are and which look is on.
import { createAnswers } from "./answers.js";
import { el, measured } from "./dom.js";
import { createFilm } from "./evict.js";
import { createExports } from "./exports.js";
import { createFidelity } from "./fidelity.js";
import { createHeadline, createTop } from "./header.js";
import { createMap } from "./map.js";
import { createOverlays } from "./overlays.js";
import { readPalette } from "./palette.js";
import { createBudget, createToken } from "./side.js";
import { createStage } from "./stage.js";
import { createTables } from "./tables.js";
import { createText } from "./text.js";
import { createTimeline } from "./timeline.js";

// Letters of a talk are read from ten metres; 24 points on a screen of 1920. A low window leaves the picture its room.
const sizeOf = (width, present) => (present ? Math.max(12, Math.min(30, window.innerHeight / 36, Math.max(width < 600 ? 16 : 20, width / 80))) : width < 600 ? 13 : width < 1500 ? 14 : 15);

export function createUi(element, { dispatch, hover, link, current, redraw, runs, strings, tour, looks, times, files }) {
  const overlays = createOverlays({ dispatch });
  const top = createTop({ dispatch, runs, languages: Object.keys(strings), openMeasured: overlays.openMeasured }), headline = createHeadline(), stage = createStage({ dispatch, tour });
  const map = createMap({ dispatch, hover, redraw }), token = createToken(), budget = createBudget({ dispatch, times, redraw }), timeline = createTimeline({ dispatch, redraw }), answers = createAnswers({ dispatch });
  const text = createText({ dispatch, hover }), fidelity = createFidelity({ redraw }), tables = createTables(), exports = createExports({ files, link, current }), film = createFilm({ dispatch, redraw });
  const main = el("div", { class: "fp-main" },
    el("div", { class: "fp-upper" }, map.node, el("aside", { class: "fp-side" }, token.node, budget.node)), timeline.node, answers.node,
    el("div", { class: "fp-lower" }, text.node, fidelity.node));
  const root = el("div", { class: "fp-root", lang: "en" }, top.node, headline.node, stage.node, main, tables.node, exports.node, ...overlays.nodes, stage.blank);
  element.replaceChildren(root);
  const box = measured(root, redraw);
  let colors = null, colorKey = "", rootKey = "";

  const theme = (state) => state.theme || (document.body.classList.contains("dark") ? "dark" : "light");

  // Written only where it changed: the whole page's style hangs on these.
  function setRoot({ state, size, say }) {
    const key = `${state.present} ${state.panel} ${state.scene > 0} ${say.lang} ${size}`;
    if (key === rootKey) return;
    rootKey = key;
    Object.assign(root.dataset, { present: state.present ? "1" : "0", panel: state.panel, touring: state.scene > 0 ? "1" : "0" });
    root.lang = say.lang;
    root.style.setProperty("--fp-size", `${size}px`);
  }

  return {
    root, isOpen: overlays.isOpen, close: overlays.close,
    // Adds what depends on the box the player stands in.
    complete(model) {
      const { state } = model, look = `${theme(state)} ${state.contrast}`, width = box.w || root.clientWidth;
      if (look !== colorKey) {
        colorKey = look;
        root.dataset.theme = theme(state);
        root.dataset.contrast = state.contrast ? "1" : "0";
        colors = readPalette(root, looks);
      }
      return Object.assign(model, { theme: look, dark: theme(state) === "dark", colors, size: sizeOf(state.present ? window.innerWidth : width, state.present), room: () => main.clientHeight - timeline.node.offsetHeight - 12 });
    },
    update(model, pointed) {
      setRoot(model);
      const evict = Boolean(model.run.tab);
      if (film.node.isConnected !== evict) {
        for (const [fuse, own] of [[main, film.node], [tables.node, film.tables]]) (evict ? fuse : own).replaceWith(evict ? own : fuse);
      }
      for (const view of [top, headline, stage, exports, overlays, ...(evict ? [film] : [answers, token, budget, timeline, tables, map, text, fidelity])]) view.update(model, pointed);
    },
  };
}
