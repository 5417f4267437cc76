// The words of one chunk, token by token, in the states of the map. Pointing at a token points at it everywhere.
import { rowsAt } from "../core/budget.js";
import { selectionEnd } from "../core/clock.js";
import { chunkAt } from "../core/decode.js";
import { count, decimals, shorten } from "../core/words.js";
import { arrows, bdi, el, keyed, write } from "./dom.js";

const LONGEST = 400;

export function createText({ dispatch, hover }) {
  const title = el("h2", { class: "fp-title" }), tabs = el("div", { class: "fp-numbers", role: "group" });
  const head = el("p", { class: "fp-chunk-head" }), words = el("div", { class: "fp-words", dir: "auto", tabindex: "0", role: "group" });
  const node = el("section", { class: "fp-panel fp-text-panel" }, el("div", { class: "fp-panel-head" }, title, tabs), head, words);
  let marked = null;

  const positionOf = (target) => (target.dataset && target.dataset.p ? Number(target.dataset.p) : null);
  words.addEventListener("pointerover", (event) => positionOf(event.target) !== null && hover(positionOf(event.target)));
  words.addEventListener("pointerleave", () => hover(null));
  words.addEventListener("click", (event) => positionOf(event.target) !== null && dispatch({ type: "token", token: positionOf(event.target) }));
  arrows(words, { ArrowRight: 1, ArrowLeft: -1 }, (by) => dispatch({ type: "moveToken", by }));

  const drawTabs = keyed(tabs, (run, chunk) => run.chunks.map((other, i) => el("button", {
    type: "button", class: "fp-number", text: String(i + 1), title: shorten(other.title, 80), "aria-pressed": String(i + 1 === chunk.number), on: { click: () => dispatch({ type: "token", token: other.start }) },
  })));
  const drawWords = keyed(words, (run, method, ratio, chunk) => {
    const mask = rowsAt(run, method, ratio), made = [];
    for (let p = chunk.start; p < chunk.stop; p++) {
      const classes = ["fp-token"];
      if (mask[p]) classes.push("fp-token-recomputed");
      if (method.anchors && method.anchors[p]) classes.push("fp-token-anchor");
      if (run.answer_spans.some(([a, b]) => a <= p && p < b)) classes.push("fp-token-answer");
      made.push(el("span", { class: classes.join(" "), text: shorten(run.tokens[p], LONGEST), data: { p: String(p) } }));
    }
    return made;
  });
  const drawHead = keyed(head, (run, chunk, say, locale) => [el("b", { text: `${chunk.number} ` }), bdi(shorten(chunk.title, 120), "fp-strong"),
    el("span", { class: "fp-muted", text: ` · ${say("chunk_tokens", { count: count(chunk.stop - chunk.start, locale) })}${chunk.relevance === null ? "" : ` · ${say("relevance")} ${decimals(chunk.relevance, 2, locale)}`} · ${say(`cache_${chunk.source}`)} · ` }), el("code", { text: chunk.cache_hash.slice(0, 10) })]);

  function update(model, token) {
    const { run, method, state, say, locale } = model, chunk = shownChunk(run, token ?? state.token);
    write(title, say("text_title"));
    node.hidden = !chunk;
    if (!chunk) return;
    drawTabs(`${run.id} ${chunk.number}`, run, chunk);
    drawHead(`${run.id} ${chunk.number} ${say.lang}`, run, chunk, say, locale);
    drawWords(`${run.id} ${method.name} ${state.ratio} ${chunk.number}`, run, method, state.ratio, chunk);
    words.classList.toggle("fp-unchosen", state.time < selectionEnd(method));
    words.setAttribute("aria-label", say("text_label"));
    const span = token === null ? null : words.querySelector(`[data-p="${token}"]`);
    if (span !== marked) {
      if (marked) marked.classList.remove("fp-token-current");
      if (span) { span.classList.add("fp-token-current"); keepInView(words, span); }
      marked = span;
    }
  }
  return { node, update };
}

// The chunk of the token, else the one that holds the answer, else the first.
function shownChunk(run, token) {
  const found = token === null ? null : chunkAt(run, token);
  return found || (run.answer_spans.length && chunkAt(run, run.answer_spans[0][0])) || (run.chunks.length ? { ...run.chunks[0], number: 1 } : null);
}

// Scrolls the words, never the page.
function keepInView(frame, span) {
  const top = span.offsetTop - frame.offsetTop;
  if (top < frame.scrollTop || top > frame.scrollTop + frame.clientHeight - 30) frame.scrollTop = top - frame.clientHeight / 3;
}
