// One line about the running request, and the answers as they grow.
root.setAttribute("role", "status");
play(() => {
  const data = unpack();
  if (!data) return show();
  const line = node("div", `fs-status fs-status-${data.kind}`);
  line.append(node("span", "fs-status-mark", data.mark), node("bdi", "fs-status-text", data.message));
  let bar = null;
  if (data.kind === "busy") {
    bar = node("div", "fs-bar");
    const done = node("div", "fs-bar-done");
    done.style.width = `${Math.round(100 * Math.min(1, Math.max(0, data.fraction)))}%`;
    bar.append(done);
  }
  const answers = node("div", "fs-partial");
  for (const [name, text] of data.answers || []) {
    const card = node("div", "fs-partial-card");
    card.append(node("div", "fs-muted", name), node("bdi", "fs-partial-text", text || "…"));
    answers.append(card);
  }
  show(line, bar, answers.children.length ? answers : null);
});
