// The conversation so far: questions, answers, and on every answer what it cost and where its tokens came from.
let data = null, numShown = 0, citedFrom = null, lookedAt = null;
const opened = new Set();

// The way back from the library leads to the citation that was pressed last.
const markCited = () => {
  for (const old of root.querySelectorAll("[data-cited-from]")) delete old.dataset.citedFrom;
  const found = citedFrom && root.querySelector(`[data-key="${CSS.escape(citedFrom)}"]`);
  if (found) found.dataset.citedFrom = "";
};

// As does the way back from the run of an answer.
const markLookedAt = () => {
  for (const old of root.querySelectorAll("[data-looked-at]")) delete old.dataset.lookedAt;
  const found = lookedAt && root.querySelector(`[data-key="${CSS.escape(lookedAt)}"]`);
  if (found) found.dataset.lookedAt = "";
};

const cite = (key, chunk) => {
  citedFrom = key;
  markCited();
  trigger("cite", { chunk });
};

const citation = (source, turn) => {
  const key = `cite-${turn}-${source.id}`;
  const button = press(`[${source.number}]`, "fs-chat-cite", () => cite(key, source.id), key);
  button.setAttribute("aria-label", `Chunk ${source.number}, ${source.title}: show it in the library`);
  button.title = source.title;
  return button;
};

const sourceRow = (source, turn) => {
  const row = node("li", source.cited ? "fs-chat-source fs-chat-cited" : "fs-chat-source");
  const key = `source-${turn}-${source.id}`;
  const open = press(null, "fs-chat-source-button", () => cite(key, source.id), key);
  open.append(node("span", "fs-chunk-number", String(source.number)), node("bdi", "fs-chat-source-title", source.title));
  row.append(open, node("span", "fs-chat-source-facts", source.facts));
  return row;
};

const sourcesOf = (turn, i) => {
  const box = node("details", "fs-chat-sources");
  box.open = opened.has(i);
  box.ontoggle = () => { box.open ? opened.add(i) : opened.delete(i); };
  const head = node("summary", "", turn.sources_title);
  head.dataset.key = `sources-${i}`;
  const list = node("ol", "fs-chat-source-list");
  list.append(...turn.sources.map((source) => sourceRow(source, i)));
  box.append(head, list, node("p", "fs-chat-fine", turn.times));
  if (turn.searched) {
    const searched = node("p", "fs-chat-fine");
    searched.append(node("bdi", "", turn.searched));
    box.append(searched);
  }
  return box;
};

const questionOf = (turn, i) => {
  const box = node("div", "fs-chat-question");
  const text = node("p", "fs-chat-text");
  text.dir = "auto";
  text.append(node("bdi", "", turn.question));
  const line = node("div", "fs-chat-question-line");
  if (data.editing === i) line.append(node("span", "fs-muted", "being edited below"));
  else {
    const edit = press("Edit", "fs-chat-small", () => trigger("edit", { turn: i }), `edit-${i}`);
    edit.setAttribute("aria-label", `Edit question ${i + 1}`);
    line.append(edit);
  }
  box.append(text, line);
  return box;
};

const answerText = (turn) => {
  const text = node("p", "fs-chat-text");
  text.dir = "auto";
  text.append(node("bdi", "", turn.answer));
  return text;
};

const actionsOf = (turn, i) => {
  const line = node("div", "fs-chat-actions");
  const add = (label, event, why) => {
    const button = press(label, "fs-chat-button", () => {
      // Spelled out, because events are known by the names that stand in this text.
      if (event === "details") {
        lookedAt = `details-${i}`;
        markLookedAt();
        trigger("details", { turn: i });
      }
      if (event === "compare") trigger("compare", { turn: i });
      if (event === "retry") trigger("retry", { turn: i });
    }, `${event}-${i}`);
    button.disabled = Boolean(why);
    button.title = why || "";
    line.append(button);
  };
  if (turn.state === "done") {
    add("View details", "details", turn.has_run ? "" : turn.no_run);
    if (turn.can_compare) add("Compare with full prefill", "compare");
  }
  if (i === data.turns.length - 1) add("Retry", "retry");
  return line;
};

const answerOf = (turn, i) => {
  const box = node("article", `fs-chat-answer fs-chat-${turn.state}`);
  box.setAttribute("aria-label", `Answer ${i + 1}`);
  const head = node("div", "fs-chat-head");
  if (turn.badge) head.append(badge(turn.badge));
  head.append(node("span", "fs-chat-mode", turn.mode));
  if (turn.ttft) {
    const time = node("span", "fs-chat-ttft");
    time.append(node("span", "fs-muted", "first token after "), node("strong", "", turn.ttft));
    head.append(time);
  }
  box.append(head);
  if (turn.answer) box.append(answerText(turn));
  if (turn.message) box.append(node("p", "fs-chat-message", turn.message));
  const cited = turn.sources.filter((source) => source.cited);
  if (cited.length) {
    const line = node("p", "fs-chat-cites");
    line.append(node("span", "fs-muted", "Shares its wording with "), ...cited.map((source) => citation(source, i)));
    line.title = data.cited_help;
    box.append(line);
  }
  if (turn.parts.length) box.append(sourceBar(turn.parts));
  for (const notice of turn.notices) box.append(node("p", "fs-notice", notice));
  if (turn.compared) {
    const compared = node("div", "fs-chat-compared");
    compared.append(node("strong", "", turn.compared.verdict), node("span", "", ` ${turn.compared.text}`));
    if (turn.compared.answer) {
      const full = node("p", "fs-chat-text");
      full.dir = "auto";
      full.append(node("span", "fs-muted", "Full prefill answers: "), node("bdi", "", turn.compared.answer));
      compared.append(full);
    }
    box.append(compared);
  }
  if (turn.sources.length) box.append(sourcesOf(turn, i));
  box.append(actionsOf(turn, i));
  if (turn.details) box.append(node("p", "fs-chat-fine", turn.details));
  return box;
};

const turnOf = (turn, i) => {
  const item = node("li", "fs-chat-turn");
  item.append(questionOf(turn, i), answerOf(turn, i));
  return item;
};

const emptyOf = (offer) => {
  const box = node("div", "fs-chat-empty");
  box.append(node("h3", "", offer.title));
  const steps = node("ol", "fs-chat-steps");
  steps.append(...offer.steps.map((text) => node("li", "", text)));
  box.append(steps);
  if (offer.questions.length) {
    const list = node("div", "fs-chat-offers");
    for (const [i, question] of offer.questions.entries()) {
      const button = press(null, "fs-chat-offer", () => trigger("ask", { question }), `ask-${i}`);
      button.append(node("bdi", "", question));
      list.append(button);
    }
    box.append(node("p", "fs-muted", offer.questions_title), list);
  }
  return box;
};

const draw = () => {
  if (!data) return show();
  if (!data.turns.length) return show(data.offer ? emptyOf(data.offer) : null);
  const list = node("ol", "fs-chat-list");
  list.append(...data.turns.map(turnOf));
  show(list);
};

play(() => {
  const box = frame(), wasAtEnd = !box || box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  data = unpack();
  const num = data ? data.turns.length : 0, last = num - 1;
  // What was opened in turns that are gone does not open those of a new conversation.
  for (const turn of opened) if (turn >= num) opened.delete(turn);
  if (!num) citedFrom = lookedAt = null;
  redraw(draw, [`details-${last}`, `edit-${last}`]);
  markCited();
  markLookedAt();
  if (box && (wasAtEnd || num > numShown)) box.scrollTop = box.scrollHeight;
  numShown = num;
});
