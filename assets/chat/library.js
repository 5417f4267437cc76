// The library: its documents, and the chunks of the one that is open, each with summary, hash, tokens, state of its KV cache and hits.
let data = null, asked = null, focused = null, renaming = null;

// A press that deletes asks once more, on the spot.
const remover = (key, text, question, act) => {
  const holder = node("span", "fs-chat-remover");
  if (asked !== key) {
    holder.append(press(text, "fs-chat-small", () => { asked = key; redraw(draw, [`${key}-keep`]); find(`${key}-keep`); }, key));
    return holder;
  }
  holder.append(node("span", "fs-chat-sure", question), press("Delete", "fs-chat-small fs-chat-danger", () => { asked = null; act(); }, `${key}-yes`),
    press("Keep", "fs-chat-small", () => { asked = null; redraw(draw); find(key); }, `${key}-keep`));
  return holder;
};

const find = (key) => {
  const found = root.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (found) found.focus();
};

const kvMark = (kv) => {
  const mark = node("span", `fs-chat-kv fs-chat-kv-${kv.state}`);
  mark.append(node("span", "fs-chat-kv-dot"), node("span", "", kv.text));
  return mark;
};

// Leads back from a chunk to the citation that pointed at it.
const back = () => {
  const found = document.querySelector("#chat-thread [data-cited-from]") || document.querySelector("#chat-thread button");
  if (!found) return;
  found.scrollIntoView({ block: "center" });
  found.focus();
};

const chunkOf = (chunk) => {
  const isFocus = chunk.id === data.focus;
  const row = node("li", isFocus ? "fs-chat-chunk fs-chat-chunk-focus" : "fs-chat-chunk");
  row.dataset.chunk = chunk.id;
  row.dataset.key = `chunk-${chunk.id}`;
  row.tabIndex = -1;
  const head = node("div", "fs-chat-chunk-head");
  head.append(node("span", "fs-chunk-number", String(chunk.number)), node("bdi", "fs-chat-chunk-title", chunk.title), kvMark(chunk.kv));
  const summary = node("p", "fs-chat-summary");
  summary.dir = "auto";
  summary.append(node("bdi", "", isFocus ? chunk.text : chunk.summary));
  const facts = node("p", "fs-chat-chunk-facts");
  const hash = node("code", "", chunk.hash);
  hash.title = "Hash of the chunk's text: the same text is computed once.";
  facts.append(hash, node("span", "", ` · ${chunk.facts}`));
  row.append(head);
  // Above the text, which may be longer than the frame is high.
  if (isFocus) row.append(press("Back to the answer", "fs-chat-small", back, `back-${chunk.id}`));
  row.append(summary, facts);
  return row;
};

const pagerOf = () => {
  const line = node("div", "fs-chat-pager");
  const stop = data.start + data.chunks.length;
  line.append(node("span", "fs-muted", `Chunks ${counted(data.start + 1)} to ${counted(stop)} of ${counted(data.num_chunks)}`));
  const earlier = press("Earlier", "fs-chat-small", () => trigger("leaf", { start: data.start - data.page_len }), "earlier");
  const later = press("Later", "fs-chat-small", () => trigger("leaf", { start: stop }), "later");
  earlier.disabled = data.start === 0;
  later.disabled = stop >= data.num_chunks;
  line.append(earlier, later);
  return line;
};

// Which documents are searched: sent whole, and counted at once, as many ticks may be set one after the other.
const searchIn = (documents, on) => {
  for (const one of documents) one.searched = on;
  redraw(draw);
  trigger("tick", { left_out: data.documents.filter((one) => !one.searched).map((one) => one.id) });
};

const tickOf = (one) => {
  const box = node("input", "fs-chat-tick");
  box.type = "checkbox";
  box.checked = one.searched;
  box.dataset.key = `tick-${one.id}`;
  box.title = "Whether questions are searched for in this document";
  box.setAttribute("aria-label", `Search in ${one.title}`);
  box.onchange = () => searchIn([one], box.checked);
  return box;
};

const scopeOf = () => {
  const line = node("div", "fs-chat-scope"), num = data.documents.filter((one) => one.searched).length, all = data.documents.length;
  const said = node("span", num ? "" : "fs-chat-none", num === all ? `Search in all ${counted(all)} documents` : `Search in ${counted(num)} of ${counted(all)} documents`);
  said.setAttribute("role", "status");
  line.append(said, press(num === all ? "Untick all" : "Tick all", "fs-chat-small", () => searchIn(data.documents, num !== all), "tick-all"));
  return line;
};

const closeNaming = () => {
  renaming = null;
  redraw(draw, ["rename"]);
};

// The library's new name. It is not drawn anew while it is typed; an error leaves it as it is.
const namingOf = () => {
  const form = node("form", "fs-chat-naming"), name = node("input", "fs-chat-name"), save = node("button", "fs-chat-small", "Save");
  name.value = data.name;
  name.maxLength = 60;
  name.dataset.key = "name";
  name.setAttribute("aria-label", "New name of the library");
  save.type = "submit";
  save.dataset.key = "name-save";
  form.append(name, save, press("Cancel", "fs-chat-small", closeNaming, "name-cancel"));
  form.onsubmit = (event) => {
    event.preventDefault();
    if (name.value.trim() === data.name) closeNaming();
    else trigger("rename", { library: data.name, name: name.value });
  };
  name.onkeydown = (event) => { if (event.key === "Escape") closeNaming(); };
  return form;
};

const headOf = () => {
  const head = node("div", "fs-chat-library-head");
  if (renaming !== null) {
    head.append(namingOf());
    return head;
  }
  head.append(node("p", "fs-muted fs-chat-total", data.total));
  if (!data.own) return head;
  const rename = press("Rename", "fs-chat-small", () => { renaming = data.name; redraw(draw, ["name"]); root.querySelector(".fs-chat-name").select(); }, "rename");
  rename.setAttribute("aria-label", `Rename the library ${data.title}`);
  head.append(rename, remover("drop", "Delete library", data.documents.length ? `Delete it with ${data.total}?` : "Delete it?", () => trigger("drop", { library: data.name })));
  return head;
};

const documentOf = (one) => {
  const isOpen = one.id === data.open;
  const item = node("li", "fs-chat-document");
  const head = node("div", "fs-chat-document-head");
  const toggle = press(null, "fs-chat-document-button", () => trigger("open", { document: isOpen ? "" : one.id }), `document-${one.id}`);
  toggle.setAttribute("aria-expanded", String(isOpen));
  const words = node("span", "fs-chat-document-words");
  words.append(node("bdi", "fs-chat-document-title", one.title), node("span", "fs-chat-document-facts", one.facts));
  toggle.append(node("span", "fs-chat-caret", isOpen ? "▾" : "▸"), words);
  if (data.documents.length > 1) head.append(tickOf(one));
  head.append(toggle);
  if (one.own) head.append(remover(`remove-${one.id}`, "Delete", "Delete it?", () => trigger("remove", { document: one.id })));
  const state = node("div", "fs-chat-kv-line");
  state.append(kvMark(one.kv));
  const ahead = (on, text) => press(text, "fs-chat-small", () => trigger("ahead", { document: one.id, on }), `ahead-${one.id}`);
  if (one.kv.can_stop) state.append(ahead(false, "Stop computing"));
  else if (one.own && one.kv.state === "none") state.append(ahead(true, "Compute now"));
  item.append(head, state);
  if (one.kv.state === "computing") {
    const bar = node("div", "fs-bar"), done = node("div", "fs-bar-done");
    done.style.width = `${Math.round(100 * one.kv.share)}%`;
    bar.append(done);
    item.append(bar);
  }
  if (isOpen) {
    if (data.num_chunks > data.chunks.length) item.append(pagerOf());
    const list = node("ol", "fs-chat-chunks");
    list.setAttribute("aria-label", `Chunks of ${one.title}`);
    list.append(...data.chunks.map(chunkOf));
    item.append(list);
  }
  return item;
};

const draw = () => {
  if (!data) return show();
  const place = root.querySelector(".fs-chat-documents"), top = place ? place.scrollTop : 0;
  const list = node("ul", "fs-chat-documents");
  list.setAttribute("aria-label", `Documents of ${data.title}`);
  list.append(...data.documents.map(documentOf));
  const foot = node("div", "fs-chat-foot");
  foot.append(node("p", "fs-chat-fine", data.note));
  if (data.can_forget) foot.append(remover("forget", "Delete all my documents", "Delete all of yours?", () => trigger("forget", {})));
  const scope = data.documents.length > 1 ? scopeOf() : null;
  if (data.resting) foot.prepend(node("p", "fs-notice", data.resting));
  show(headOf(), scope, data.documents.length ? list : node("p", "fs-empty", data.empty), foot);
  list.scrollTop = top;
};

play(() => {
  data = unpack();
  if (renaming !== null && data && data.name === renaming && root.querySelector(".fs-chat-naming")) return;
  const isRenamed = renaming !== null;
  renaming = null;
  redraw(draw, isRenamed ? ["rename"] : data && data.open ? [`document-${data.open}`] : []);
  if (!data || !data.focus) {
    focused = null;
    return;
  }
  const row = root.querySelector(".fs-chat-chunk-focus");
  // The same chunk may be pointed at twice; the count tells a new press from a redraw while caches are computed.
  if (!row || focused === data.focus_count) return;
  focused = data.focus_count;
  row.scrollIntoView({ block: "nearest" });
  row.focus({ preventScroll: true });
});
