// One card per method: time, answer, and how it compares with the gold answer and with full prefill.
const pairOf = (name, value, help) => {
  const pair = node("div", "fs-fact");
  pair.title = help;
  pair.append(node("dt", "", name), node("dd", "", value));
  return pair;
};

const cardOf = (card) => {
  const box = node("article", "fs-card");
  box.style.setProperty("--method", card.color);
  const head = node("header", "fs-card-head");
  const title = node("div"), time = node("div", "fs-card-right");
  title.append(node("h3", "", card.title), node("p", "fs-card-note", card.share));
  time.append(node("div", "fs-card-time", card.time), node("p", "fs-card-note", card.speed));
  head.append(title, time);
  const answer = node("p", "fs-answer");
  answer.dir = "auto";
  answer.append(node("bdi", "fs-answer-same", card.answer_same), node("bdi", "fs-answer-differs", card.answer_rest));
  const facts = node("dl", "fs-facts");
  facts.append(...card.facts.map((fact) => pairOf(...fact)));
  const asked = card.question ? node("p", "fs-card-question") : "";
  if (asked) asked.append(node("bdi", "", card.question));
  box.append(head, asked, answer, node("p", "fs-card-note", card.same), facts);
  return box;
};

const legendOf = (help) => {
  const box = node("details", "fs-help");
  box.append(node("summary", "", "What do these numbers mean?"));
  const list = node("dl");
  for (const [name, text] of help) list.append(node("dt", "", name), node("dd", "", text));
  box.append(list);
  return box;
};

play(() => {
  const data = unpack();
  if (!data) return show();
  if (!data.cards.length) return show(node("p", "fs-empty", data.reason));
  const grid = node("div", "fs-cards");
  grid.append(...data.cards.map(cardOf));
  const gold = data.gold ? node("p", "fs-gold") : null;
  if (gold) gold.append(node("span", "fs-muted", "Gold answer: "), node("bdi", "", data.gold));
  show(gold, grid, data.help.length ? legendOf(data.help) : null);
});
