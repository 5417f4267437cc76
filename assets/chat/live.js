// The question that is being answered: what the engine does, the retrieved chunks, and the answer as it grows.
const question = node("p", "fs-chat-text"), status = node("p", "fs-chat-status"), bar = node("div", "fs-bar"), done = node("div", "fs-bar-done");
const answer = node("p", "fs-chat-text"), sources = node("p", "fs-chat-fine"), mode = node("span", "fs-chat-mode");
const asked = node("div", "fs-chat-question"), box = node("article", "fs-chat-answer fs-chat-busy"), head = node("div", "fs-chat-head");
question.dir = answer.dir = "auto";
status.setAttribute("role", "status");
// New words are appended, so that a screen reader says them once.
answer.setAttribute("aria-live", "polite");
answer.setAttribute("aria-atomic", "false");
box.setAttribute("aria-label", "Answer in progress");
bar.append(done);
asked.append(question);
head.append(mode);
box.append(head, answer, status, bar, sources);

let said = "";
const say = (text) => {
  if (!text.startsWith(said)) {
    answer.replaceChildren();
    said = "";
  }
  if (text.length > said.length) answer.append(document.createTextNode(text.slice(said.length)));
  said = text;
};

play(() => {
  const data = unpack();
  if (!data) {
    say("");
    status.textContent = "";
    return show();
  }
  const isNew = !root.contains(box), place = frame();
  const wasAtEnd = !place || place.scrollHeight - place.scrollTop - place.clientHeight < 80;
  question.textContent = data.question;
  mode.textContent = data.mode;
  if (status.textContent !== data.message) status.textContent = data.message;
  done.style.width = `${Math.round(100 * Math.min(1, Math.max(0, data.fraction)))}%`;
  sources.textContent = data.sources;
  if (isNew) show(asked, box);
  say(data.answer);
  if (place && (isNew || wasAtEnd)) place.scrollTop = place.scrollHeight;
  if (isNew) box.scrollIntoView({ block: "nearest" });
});
