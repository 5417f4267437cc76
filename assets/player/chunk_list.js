// Chunks to keep and their order: checkbox, up and down buttons, drag. Emits value.kept, ids in order.
let items = [], kept = new Set(), dragged = null;

const emit = () => { props.value = { ...props.value, kept: items.filter((item) => kept.has(item.id)).map((item) => item.id) }; };

const move = (from, to, focus) => {
  if (to < 0 || to >= items.length || from === to) return;
  items.splice(to, 0, items.splice(from, 1)[0]);
  emit();
  redraw();
  const row = root.querySelectorAll(".fs-chunk-row")[to];
  const button = row.querySelector(focus) || row.querySelector("input");
  (button.disabled ? row.querySelector("button:not(:disabled)") : button).focus();
  count.textContent = `Chunk ${to + 1} of ${items.length} now`;
};

const arrow = (className, label, glyph, disabled, act) => {
  const button = node("button", `fs-arrow ${className}`, glyph);
  button.type = "button";
  button.disabled = disabled;
  button.setAttribute("aria-label", label);
  button.onclick = act;
  return button;
};

const row = (item, i) => {
  const line = node("li", "fs-chunk-row");
  line.draggable = true;
  const label = node("label", "fs-chunk-label");
  const box = node("input");
  box.type = "checkbox";
  box.checked = kept.has(item.id);
  box.onchange = () => { box.checked ? kept.add(item.id) : kept.delete(item.id); emit(); redraw(i); };
  const words = node("span", "fs-chunk-words");
  words.append(node("bdi", "fs-chunk-title", item.title), node("bdi", "fs-chunk-preview", item.preview));
  label.append(box, node("span", "fs-chunk-number", String(i + 1)), words);
  line.classList.toggle("fs-dropped", !box.checked);
  line.append(label, arrow("fs-up", `Move ${item.title} up`, "↑", i === 0, () => move(i, i - 1, ".fs-up")),
    arrow("fs-down", `Move ${item.title} down`, "↓", i === items.length - 1, () => move(i, i + 1, ".fs-down")));
  line.ondragstart = (event) => { dragged = i; event.dataTransfer.effectAllowed = "move"; event.dataTransfer.setData("text/plain", ""); };
  line.ondragover = (event) => { if (dragged !== null) { event.preventDefault(); line.classList.add("fs-drop-here"); } };
  line.ondragleave = () => line.classList.remove("fs-drop-here");
  line.ondrop = (event) => { event.preventDefault(); const from = dragged; dragged = null; if (from !== null) move(from, i, "input"); };
  line.ondragend = () => { dragged = null; };
  return line;
};

const count = node("p", "fs-muted fs-chunk-count");
count.setAttribute("aria-live", "polite");
const redraw = (focusRow) => {
  const list = node("ol", "fs-chunk-list");
  list.append(...items.map(row));
  const old = root.querySelector(".fs-chunk-list");
  const top = old ? old.scrollTop : 0;
  count.textContent = `${kept.size} of ${items.length} chunks kept, in this order. Drag, or use the arrows.`;
  show(count, list);
  list.scrollTop = top;
  if (focusRow !== undefined) list.children[focusRow].querySelector("input").focus();
};

play(() => {
  items = (unpack() || { items: [] }).items.slice();
  kept = new Set((props.value && props.value.kept) || items.map((item) => item.id));
  redraw();
});
