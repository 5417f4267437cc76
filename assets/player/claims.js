// Published claims beside our figures. The counts on top are buttons that show one verdict only.
let data = null, only = null;

const badge = (finding) => {
  const box = node("span", `fs-verdict-badge fs-verdict-${finding.kind}`);
  const mark = node("span", "fs-verdict-mark", finding.mark);
  mark.setAttribute("aria-hidden", "true");
  box.append(mark, node("span", "", finding.verdict));
  return box;
};

const pair = (label, text, className) => {
  const line = node("p", className || "fs-claim-line");
  line.append(node("span", "fs-muted", label), node("bdi", "", text));
  return line;
};

const findingOf = (finding) => {
  const box = node("div", "fs-finding");
  const head = node("p", "fs-finding-head");
  head.append(badge(finding), node("strong", "", finding.figure === "–" ? "" : finding.figure));
  box.append(head, node("p", "fs-claim-line", finding.why));
  if (finding.basis) box.append(node("p", "fs-claim-line fs-muted", finding.basis));
  return box;
};

const claimOf = (claim) => {
  const box = node("article", "fs-claim"), theirs = node("div", "fs-claim-theirs"), ours = node("div", "fs-claim-ours");
  theirs.append(node("h4", "", claim.claim), pair("Published: ", claim.figure, "fs-claim-figure"), pair("", claim.setting), pair("", claim.source));
  if (claim.note) theirs.append(pair("", claim.note, "fs-claim-line fs-claim-note"));
  const [first, ...others] = claim.findings;
  ours.append(node("p", "fs-muted fs-claim-label", "Ours"), findingOf(first));
  if (others.length) {
    const more = node("details", "fs-help");
    more.append(node("summary", "", `${others.length} more result set${others.length > 1 ? "s" : ""}`), ...others.map(findingOf));
    ours.append(more);
  }
  if (claim.command) {
    const how = node("details", "fs-help");
    how.open = first.kind === "not-measured-yet";
    how.append(node("summary", "", "How to measure it"), node("code", "fs-command", claim.command));
    if (first.command && first.command !== claim.command) how.append(node("p", "fs-claim-line", "Our figure was made by"), node("code", "fs-command", first.command));
    ours.append(how);
  }
  box.append(theirs, ours);
  return box;
};

const countOf = (count) => {
  const button = node("button", `fs-count fs-verdict-${count.kind}`);
  button.type = "button";
  button.disabled = !count.num;
  button.setAttribute("aria-pressed", String(only === count.verdict));
  button.append(node("span", "fs-verdict-mark", count.mark), node("strong", "", String(count.num)), node("span", "", ` ${count.verdict}`));
  button.onclick = () => { only = only === count.verdict ? null : count.verdict; draw(data.counts.indexOf(count)); };
  return button;
};

const draw = (focused) => {
  if (!data) return show();
  const counts = node("div", "fs-counts");
  counts.setAttribute("role", "group");
  counts.setAttribute("aria-label", "Show one verdict only");
  counts.append(...data.counts.map(countOf));
  const groups = data.groups.map((group) => {
    const shown = group.claims.filter((claim) => !only || claim.findings[0].verdict === only);
    if (!shown.length) return null;
    const section = node("section", "fs-claim-group");
    section.append(node("h3", "", group.title), node("p", "fs-muted", group.about), ...shown.map(claimOf));
    return section;
  });
  show(node("p", "fs-claims-intro", data.intro), counts, ...groups);
  if (focused !== undefined) root.querySelectorAll(".fs-count")[focused].focus();
};

play(() => { data = unpack(); draw(); });
