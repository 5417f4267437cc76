// Where the numbers come from, the question, and the verdict in one sentence.
play(() => {
  const data = unpack();
  if (!data) return show();
  const line = node("div", "fs-badge-line");
  const server = data.server ? [node("span", "fs-badge fs-badge-server", data.server)] : [];
  line.append(node("span", `fs-badge fs-badge-${data.kind}`, data.badge), ...server, node("span", "fs-badge-details", data.details));
  const asked = data.question ? node("p", "fs-asked") : null;
  if (asked) asked.append(node("span", "fs-muted", "Question: "), node("bdi", "", data.question));
  const notices = (data.notices || []).map((text) => node("p", "fs-notice", text));
  const ranking = data.ranking ? node("p", "fs-ranking", data.ranking) : null;
  show(line, asked, node("p", "fs-verdict", data.verdict), ranking, ...notices);
});
