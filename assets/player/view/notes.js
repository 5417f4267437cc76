// The speaker's window: this scene, the next one, and how long the talk has lasted. Another window of the same address sends what is on, and
// gets the keys pressed here; nothing leaves the machine.
import { actionOf } from "../core/keys.js";
import { el, write } from "./dom.js";

const channelName = (id) => `fusescope-notes-${id}`;

// In the player's window. Returns {open, tell, close}; `dispatch` gets the actions of keys pressed in the notes.
export function speakerNotes(dispatch, linkTo) {
  const id = Math.random().toString(36).slice(2), channel = new BroadcastChannel(channelName(id));
  let last = null;
  channel.onmessage = ({ data }) => { if (data.hello) channel.postMessage(last); else if (data.action) dispatch(data.action); };
  return {
    open: () => window.open(linkTo(id), `fusescope-notes-${id}`, "width=900,height=640"),
    tell(message) { last = message; channel.postMessage(message); },
    close: () => channel.close(),
  };
}

// In the second window: draws what the channel says.
export function showNotes(element, id) {
  const channel = new BroadcastChannel(channelName(id)), began = Date.now();
  const counter = el("p", { class: "fp-counter" }), clock = el("p", { class: "fp-notes-clock" }), title = el("h1", { class: "fp-scene-title" }), sentence = el("p", { class: "fp-sentence" }), next = el("div", { class: "fp-notes-next" });
  element.replaceChildren(el("div", { class: "fp-root fp-notes" }, el("div", { class: "fp-scene-head" }, counter, clock), title, sentence, next));
  channel.onmessage = ({ data }) => {
    if (!data || !data.title) return;
    write(counter, data.counter);
    write(title, data.title);
    write(sentence, data.sentence);
    next.replaceChildren(...(data.next ? [el("h2", { class: "fp-subtitle", text: `${data.nextLabel} ${data.next.title}` }), el("p", { text: data.next.sentence })] : []));
  };
  channel.postMessage({ hello: true });
  const tick = () => { const s = Math.floor((Date.now() - began) / 1000); write(clock, `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`); };
  tick();
  setInterval(tick, 1000);
  document.addEventListener("keydown", (event) => {
    const action = actionOf(event, { present: true, scene: 1 });
    if (!action || action.type === "notes" || action.type === "fullscreen") return;
    event.preventDefault();
    channel.postMessage({ action });
  });
}
