// A table whose columns sort, with a button a row that asks for its run. Triggers "pick" with what the row stands for.
let data = null, order = null;

const sorted = () => {
  if (!order) return data.rows;
  const way = order.up ? 1 : -1;
  const rank = (row) => row.keys[order.column];
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  // Rows without a value stay at the end, whichever way the rest goes.
  return [...data.rows].sort((a, b) => (rank(a) === null) - (rank(b) === null) || (rank(a) === null ? 0 : way * compare(rank(a), rank(b))));
};

const headCell = (text, column) => {
  const cell = node("th"), button = node("button", "fs-sort", text);
  cell.scope = "col";
  const here = order && order.column === column;
  cell.setAttribute("aria-sort", here ? (order.up ? "ascending" : "descending") : "none");
  button.append(node("span", "fs-sort-mark", here ? (order.up ? " ▴" : " ▾") : ""));
  button.type = "button";
  button.onclick = () => {
    order = here ? (order.up ? { column, up: false } : null) : { column, up: true };
    draw();
    root.querySelectorAll(".fs-sort")[column].focus();
  };
  cell.append(button);
  return cell;
};

const rowOf = (row) => {
  const line = node("tr");
  row.cells.forEach((text, i) => {
    const cell = node(i ? "td" : "th", i ? "" : "fs-method-cell");
    if (!i) { cell.scope = "row"; cell.style.setProperty("--method", row.color); }
    cell.append(node("bdi", "", text));
    line.append(cell);
  });
  if (row.pick) {
    const cell = node("td"), button = node("button", "fs-pick", "Show a run");
    button.type = "button";
    button.setAttribute("aria-label", `Show a recorded run of ${row.cells[0]} at ratio ${row.cells[1]} in the Fuse tab`);
    button.onclick = () => trigger("pick", row.pick);
    cell.append(button);
    line.append(cell);
  }
  return line;
};

const draw = () => {
  if (!data) return show();
  const caption = node("p", "fs-caption", data.caption);
  if (!data.rows.length) return show(caption, node("p", "fs-empty", data.reason));
  const old = root.querySelector(".fs-table-frame"), left = old ? old.scrollLeft : 0, top = old ? old.scrollTop : 0;
  const table = node("table", "fs-table"), head = node("thead"), headRow = node("tr"), body = node("tbody");
  table.setAttribute("aria-label", data.caption);
  headRow.append(...data.columns.map(headCell));
  if (data.rows[0].pick) headRow.append(node("th", "", "In the Fuse tab"));
  head.append(headRow);
  body.append(...sorted().map(rowOf));
  table.append(head, body);
  const frame = node("div", "fs-table-frame");
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", data.caption);
  frame.append(table);
  show(caption, frame, node("p", "fs-muted fs-note", data.note));
  frame.scrollLeft = left;
  frame.scrollTop = top;
};

play(() => { data = unpack(); draw(); });
