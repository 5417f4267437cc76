// A plain table: caption, column heads, rows; the first cell of a row is its head.
play(() => {
  const data = unpack();
  if (!data) return show();
  const table = node("table", "fs-table");
  table.setAttribute("aria-label", data.caption);
  const headRow = node("tr");
  for (const column of data.columns) {
    const cell = node("th", "", column);
    cell.scope = "col";
    headRow.append(cell);
  }
  const head = node("thead");
  head.append(headRow);
  const body = node("tbody");
  for (const row of data.rows) {
    const line = node("tr");
    row.forEach((text, i) => {
      const cell = node(i ? "td" : "th", "");
      if (!i) cell.scope = "row";
      cell.append(node("bdi", "", text));
      line.append(cell);
    });
    body.append(line);
  }
  table.append(head, body);
  const frame = node("div", "fs-table-frame");
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", data.caption);
  frame.append(table);
  const caption = node("p", "fs-caption", data.caption);
  show(caption, data.rows.length ? frame : node("p", "fs-empty", data.reason), data.note && data.rows.length ? node("p", "fs-muted fs-note", data.note) : null);
});
