// Methods to run, in groups: checkboxes, what the one pointed at does, and a list of all of them. Emits value.chosen, names.
let data = { groups: [], usual: [] }, chosen = new Set();

const all = () => data.groups.flatMap((group) => group.methods);
const emit = () => { props.value = { ...props.value, chosen: all().map((method) => method.name).filter((name) => chosen.has(name)) }; };

const count = node("p", "fs-muted fs-method-count");
count.setAttribute("aria-live", "polite");
const rule = node("p", "fs-method-rule");

const update = () => {
  for (const box of root.querySelectorAll(".fs-method-row input")) box.checked = chosen.has(box.value);
  count.textContent = `${chosen.size} of ${all().length} chosen`;
};

const explain = (method) => rule.replaceChildren(node("strong", "", `${method.label}: `), node("span", "", method.rule || "no description"));

const row = (method) => {
  const label = node("label", "fs-method-row");
  label.style.setProperty("--method", method.color);
  label.title = method.rule;
  const box = node("input");
  box.type = "checkbox";
  box.value = method.name;
  box.onchange = () => { box.checked ? chosen.add(method.name) : chosen.delete(method.name); emit(); update(); };
  box.onfocus = () => explain(method);
  label.onpointerenter = () => explain(method);
  label.append(box, node("span", "fs-method-name", method.label));
  return label;
};

const groupOf = (group) => {
  const set = node("fieldset", "fs-method-group");
  set.append(node("legend", "", group.title), ...group.methods.map(row));
  return set;
};

const preset = (text, label, names) => {
  const button = node("button", "fs-more", text);
  button.type = "button";
  button.setAttribute("aria-label", label);
  button.onclick = () => { chosen = new Set(names()); emit(); update(); };
  return button;
};

const list = () => {
  const box = node("details", "fs-help"), pairs = node("dl", "fs-method-list");
  box.append(node("summary", "", "What each method does, and where it is from"), pairs);
  for (const method of all()) pairs.append(node("dt", "", method.label), node("dd", "", method.rule || "no description"));
  return box;
};

play(() => {
  data = unpack() || data;
  chosen = new Set((props.value && props.value.chosen) || data.usual);
  const head = node("div", "fs-method-head");
  head.append(count, preset("All", "Choose all methods", () => all().map((method) => method.name)), preset("Usual", "Choose the usual methods", () => data.usual));
  rule.textContent = "Point at a method, or move to it with Tab, to read what it does.";
  show(head, ...data.groups.map(groupOf), rule, list());
  update();
});
