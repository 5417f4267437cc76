// Builds DOM. Text is only ever set as text; there is no way here to set markup.

export function el(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  const { class: className, text, on = {}, data = {}, style = {}, ...attributes } = options;
  if (className) node.className = className;
  if (text !== undefined && text !== null) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
  for (const [name, value] of Object.entries(data)) node.dataset[name] = value;
  for (const [name, value] of Object.entries(style)) node.style.setProperty(name, value);
  for (const [name, listener] of Object.entries(on)) node.addEventListener(name, listener);
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Text of unknown language and direction.
export const bdi = (text, className) => el("bdi", { class: className, text });

export const button = (text, press, options = {}) => el("button", { type: "button", class: "fp-button", text, on: { click: press }, ...options });

// Sets text only where it changed: screen readers announce live regions at every write.
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Arrow keys of a focused node: `steps` gives what `act` gets by the key's name.
export function arrows(node, steps, act) {
  node.addEventListener("keydown", (event) => {
    const by = steps[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    act(by, event);
  });
}

// The size of a box, kept up to date without asking for it: asking in every frame makes the browser lay the page out in every frame.
export function measured(node, changed) {
  const box = { w: 0, h: 0 };
  new ResizeObserver(([entry]) => {
    box.w = Math.floor(entry.contentRect.width);
    box.h = Math.floor(entry.contentRect.height);
    changed();
  }).observe(node);
  return box;
}

// Runs `make` again only when `key` changed, and puts what it returns into `node`.
export function keyed(node, make) {
  let last;
  return (key, ...args) => {
    if (key === last) return;
    last = key;
    node.replaceChildren(...[make(...args)].flat().filter(Boolean));
  };
}
