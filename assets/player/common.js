// Shared by every player: unpack the value, build DOM. Text is only ever set through textContent.
const unpack = () => {
  const packed = props.value && props.value.b64;
  if (!packed) return null;
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(packed), (c) => c.charCodeAt(0))));
};
const node = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined && text !== null) made.textContent = text;
  return made;
};
const root = element.querySelector(".fs-root");
const show = (...children) => root.replaceChildren(...children.filter(Boolean));
const play = (draw) => { watch("value", draw); draw(); };
