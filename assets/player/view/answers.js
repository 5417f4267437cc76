// Answers side by side: empty until the method's lane ends, then word by word; what differs from full prefill is underlined.
import { answerAt, firstTokenTime } from "../core/clock.js";
import { methodOf } from "../core/decode.js";
import { splitAtDifference } from "../core/diff.js";
import { seconds } from "../core/words.js";
import { bdi, el, keyed, write } from "./dom.js";

export function createAnswers({ dispatch }) {
  const list = el("div", { class: "fp-cards" }), title = el("h2", { class: "fp-title" }), gold = el("span", { class: "fp-gold" });
  const node = el("section", { class: "fp-panel fp-answers-panel" }, el("div", { class: "fp-panel-head" }, title, gold), list);
  let cards = [];
  const build = keyed(list, (model) => {
    cards = model.shown.map((method) => makeCard(method, model, dispatch));
    return cards.map((card) => card.node);
  });
  const drawGold = keyed(gold, (run, say) => (run.gold_answers.length ? [el("span", { text: `${say("expected")} ` }), bdi(run.gold_answers[0], "fp-strong")] : []));
  return {
    node,
    update(model) {
      const { run, say } = model;
      write(title, say("answers_title"));
      drawGold(`${run.id} ${say.lang}`, run, say);
      build(`${run.id} ${model.state.methods} ${model.method.name} ${say.lang} ${model.theme}`, model);
      list.style.setProperty("--fp-num-cards", String(cards.length));
      for (const card of cards) card.update(model);
      fitLetters(list, cards, model);
    },
  };
}

// In a talk letters are as large as the whole answers allow, so that nothing is cut and nothing jumps while words appear.
const NARROW = 600, SCALES = [1.7, 1.5, 1.3, 1.15, 1, 0.85, 0.75];

function fitLetters(list, cards, { state, run, size, say }) {
  const key = state.present ? `${run.id} ${state.methods} ${size} ${list.clientWidth} ${list.clientHeight} ${say.lang}` : "";
  if (list.dataset.fitted === key) return;
  list.dataset.fitted = key;
  list.style.removeProperty("--fp-answer");
  if (!key || list.clientWidth < NARROW || !list.clientHeight) return;
  const restore = cards.map((card) => card.showAll());
  const cut = () => cards.some(({ node }) => node.scrollHeight > node.clientHeight + 1 || [...node.children].some((child) => child.scrollHeight > child.clientHeight + 4));
  for (const scale of SCALES) {
    list.style.setProperty("--fp-answer", `${scale}em`);
    if (!cut()) break;
  }
  for (const put of restore) put();
}

function makeCard(method, { run, say, label, colors, method: current, locale }, dispatch) {
  const time = el("span", { class: "fp-card-time" }), text = el("p", { class: "fp-answer", dir: "auto" }), verdict = el("p", { class: "fp-card-verdict" });
  const name = el("button", { type: "button", class: "fp-card-name", text: label(method.name), on: { click: () => dispatch({ type: "method", method: method.name }) } });
  const node = el("article", { class: `fp-card${method === current ? " fp-current" : ""}`, style: { "--method": colors.methods[method.name] } }, el("div", { class: "fp-card-head" }, name, time), text, verdict);
  const full = methodOf(run, "full"), first = firstTokenTime(method);
  const drawText = keyed(text, (shown) => {
    if (!shown) return [];
    const { same, differs } = full && method !== full ? splitAtDifference(shown, full.answer) : { same: shown, differs: "" };
    return [el("span", { text: same }), differs && el("span", { class: "fp-differs", text: differs })];
  });
  return {
    node,
    // Fills the card with its whole answer and returns what takes that back.
    showAll() {
      const before = [...text.childNodes], said = verdict.textContent;
      text.replaceChildren(el("span", { text: method.answer }));
      verdict.textContent = verdictWords(method, full, say);
      return () => { text.replaceChildren(...before); verdict.textContent = said; };
    },
    update({ state }) {
      const shown = answerAt(method, state.time), done = shown === method.answer && state.time >= first;
      write(time, state.time >= first ? seconds(method.ttft_s, locale) : `${seconds(state.time, locale)} …`);
      node.classList.toggle("fp-waiting", state.time < first);
      drawText(shown, shown);
      write(verdict, done ? verdictWords(method, full, say) : state.time < first ? say("computing_answer") : "");
    },
  };
}

// Whether the answer is right comes first, then how it relates to full prefill's.
function verdictWords(method, full, say) {
  const parts = [];
  if (method.quality.contains_gold === true) parts.push(`✓ ${say("holds_gold")}`);
  if (method.quality.contains_gold === false) parts.push(`✗ ${say("lacks_gold")}`);
  if (full && method !== full) {
    const { equal, index } = splitAtDifference(method.answer, full.answer);
    parts.push(equal ? `≡ ${say("same_as_full")}` : say("differs_from_word", { word: String(index + 1) }));
  }
  return parts.join(" · ");
}
