// Shared by the scripts of the Chat tab: buttons, a redraw that keeps the keyboard where it was, the bar of token sources.
const press = (text, name, act, key) => {
  const button = node("button", name, text);
  button.type = "button";
  button.onclick = act;
  if (key) button.dataset.key = key;
  return button;
};

// Draws anew and gives the focus back to the element of the same key, or to the first of `instead` that is there.
const redraw = (draw, instead = []) => {
  const held = root.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  draw();
  if (held === undefined) return;
  const found = [held, ...instead].map((key) => root.querySelector(`[data-key="${CSS.escape(key)}"]`)).find(Boolean);
  if (found) found.focus({ preventScroll: true });
};

const counted = (num) => num.toLocaleString("en");

// Where the tokens of a prompt came from, as one bar; the list below it says the same in words.
const sourceBar = (parts) => {
  const box = node("div"), bar = node("div", "fs-chat-bar"), list = node("ul", "fs-chat-bar-list");
  bar.setAttribute("aria-hidden", "true");
  for (const part of parts) {
    const slice = node("span", `fs-chat-slice fs-chat-hatch-${part.hatch}`);
    slice.style.flexGrow = String(part.num);
    slice.style.backgroundColor = part.color;
    slice.title = `${part.label}: ${counted(part.num)}`;
    bar.append(slice);
    const item = node("li"), sample = node("span", `fs-chat-sample fs-chat-hatch-${part.hatch}`);
    sample.style.backgroundColor = part.color;
    item.append(sample, node("strong", "", counted(part.num)), node("span", "", ` ${part.label}`));
    list.append(item);
  }
  box.append(bar, list);
  return box;
};

const badge = (text) => node("span", "fs-badge fs-badge-live fs-chat-badge", text);

// The place that scrolls: the conversation's own frame on a wide screen, the page on a narrow one.
const frame = () => element.closest("#chat-scroll");
