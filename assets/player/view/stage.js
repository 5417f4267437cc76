// The talk: title, sentence and counter of the scene, and the blank screen.
import { sentenceOf, titleOf } from "../core/tour.js";
import { badge } from "./header.js";
import { button, el, keyed, write } from "./dom.js";

export function createStage({ dispatch, tour }) {
  const counter = el("span", { class: "fp-counter" }), title = el("h2", { class: "fp-scene-title" }), sentence = el("p", { class: "fp-sentence" });
  const source = el("span", { class: "fp-stage-badge" }), steps = el("span", { class: "fp-scene-steps" }), provenance = el("p", { class: "fp-stage-source" });
  const node = el("section", { class: "fp-stage", "aria-live": "polite" }, el("div", { class: "fp-scene-head" }, counter, title, source, steps), sentence, provenance);
  const blank = el("div", { class: "fp-blank", "aria-hidden": "true" });
  const drawSteps = keyed(steps, (say) => [
    button("❮", () => dispatch({ type: "moveScene", by: -1 }), { "aria-label": say("key_back") }), button("❯", () => dispatch({ type: "moveScene", by: 1 }), { "aria-label": say("key_next") }),
    button(say("tour_leave"), () => dispatch({ type: "escape" })),
  ]);
  const drawBadge = keyed(source, (run, offline) => [badge(run.provenance.mode), run.provenance.versions?.sglang && badge("sglang"), offline && badge("offline")]);
  return {
    node, blank,
    update({ run, state, say, locale, verdict, why, offline, title: name, source: words }) {
      const scene = state.scene > 0 ? tour[state.scene - 1] : null;
      node.hidden = !scene && !state.present;
      blank.hidden = !state.blank;
      if (node.hidden) return;
      drawSteps(say.lang, say);
      drawBadge(`${run.id} ${offline}`, run, offline);
      write(counter, scene ? `${state.scene} / ${tour.length}` : "");
      counter.hidden = !scene;
      write(title, scene ? titleOf(scene, say.lang) : name);
      write(sentence, scene ? sentenceOf(scene, run, state.ratio, say.lang, locale) : verdict);
      write(provenance, [why, words, name].filter(Boolean).join(" · "));
    },
  };
}
