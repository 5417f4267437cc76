// Ten moments, five cards each; the visitor evicts one a moment, then all four players are compared. Triggers "again" for other cards.
let data = null, picks = [];

const press = (text, name, act) => {
  const button = node("button", name, text);
  button.type = "button";
  button.onclick = act;
  return button;
};

const badgeLine = () => {
  const line = node("div", "fs-badge-line");
  line.append(node("span", "fs-badge fs-badge-simulated", data.badge), node("span", "fs-badge-details", data.details));
  return line;
};

const cardOf = (card, number) => {
  const button = press(null, "fs-evict-card", () => { picks.push(number); draw(true); });
  button.append(node("span", "fs-evict-key", String(number + 1)), node("strong", "", card.title), node("span", "fs-evict-session", card.session));
  const facts = node("ul");
  facts.append(...card.facts.map((fact) => node("li", "", fact)));
  button.append(facts);
  return button;
};

const asking = (focus) => {
  const round = picks.length, moment = data.moments[round];
  const title = node("h3", "", `Eviction ${round + 1} of ${data.moments.length}: the cache is full. Which block goes?`);
  const hint = node("p", "fs-muted", "Evict what nobody will ask for again. Press a card, or its number.");
  const dots = node("div", "fs-evict-dots");
  data.moments.forEach((_, i) => dots.append(node("span", i < round ? "fs-evict-dot fs-evict-dot-done" : "fs-evict-dot")));
  const cards = node("div", "fs-evict-cards");
  cards.append(...moment.cards.map(cardOf));
  show(badgeLine(), title, hint, dots, cards);
  if (focus) cards.querySelector("button").focus();
};

const lostBy = (choose) => data.moments.filter((moment, i) => moment.cards[choose(moment, i)].lost).length;

const verdict = (mine) => {
  const said = data.players.filter((player) => player.key !== "min").map((player) =>
    `${mine < player.lost ? "you beat" : mine > player.lost ? "you lose to" : "you tie with"} ${player.label}`);
  return `${mine} of your ${picks.length} blocks ${mine === 1 ? "was" : "were"} asked for again: ${said.join(", ")}.`;
};

const bar = (label, lost, color, own) => {
  const line = node("div", own ? "fs-evict-score fs-evict-own" : "fs-evict-score"), track = node("div", "fs-evict-track"), done = node("div", "fs-evict-done");
  done.style.width = `${100 * lost / data.moments.length}%`;
  done.style.background = color;
  track.append(done);
  line.append(node("strong", "", label), track, node("span", "", `${lost} lost`));
  return line;
};

const outcomeCell = (card) => {
  const cell = node("td");
  cell.append(node("span", card.lost ? "fs-evict-bad" : "fs-evict-good", card.lost ? "✗ " : "✓ "), node("span", "", `${card.title}, ${card.outcome}`));
  return cell;
};

const ended = () => {
  const mine = lostBy((_, i) => picks[i]);
  const scores = node("div", "fs-evict-scores");
  scores.append(bar("You", mine, "var(--body-text-color)", true), ...data.players.map((player) => bar(player.label, player.lost, player.color, false)));
  const table = node("table", "fs-table"), head = node("thead"), headRow = node("tr"), body = node("tbody");
  table.setAttribute("aria-label", "Your ten evictions beside those of the policies");
  for (const text of ["Moment", "You", ...data.players.map((player) => player.label)]) {
    const cell = node("th", "", text);
    cell.scope = "col";
    headRow.append(cell);
  }
  head.append(headRow);
  data.moments.forEach((moment, i) => {
    const line = node("tr"), first = node("th", "", moment.title);
    first.scope = "row";
    line.append(first, outcomeCell(moment.cards[picks[i]]), ...data.players.map((player) => outcomeCell(moment.cards[moment.choices[player.key]])));
    body.append(line);
  });
  table.append(head, body);
  const frame = node("div", "fs-table-frame");
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "Your ten evictions beside those of the policies");
  frame.append(table);
  const title = node("p", "fs-verdict", verdict(mine));
  title.setAttribute("role", "status");
  title.tabIndex = -1;
  const more = node("div", "fs-evict-more");
  more.append(press("Play again", "fs-evict-button", () => { picks = []; draw(true); }), press("Other blocks", "fs-evict-button", () => trigger("again", {})));
  show(badgeLine(), title, scores, more, frame, node("p", "fs-muted fs-note", data.note));
  title.focus();
};

const draw = (focus) => {
  if (!data) return show(node("p", "fs-muted", "Dealing the blocks …"));
  if (data.reason) return show(node("p", "fs-empty", data.reason));
  return picks.length < data.moments.length ? asking(focus) : ended();
};

root.addEventListener("keydown", (event) => {
  const cards = root.querySelectorAll(".fs-evict-card"), number = Number(event.key);
  if (event.ctrlKey || event.metaKey || event.altKey || !(number >= 1 && number <= cards.length)) return;
  event.preventDefault();
  cards[number - 1].click();
});
play(() => { data = unpack(); picks = []; draw(false); });
