// The player inside a page that hands a script `element`, `props` and `watch`, and perhaps a `server`, as Gradio's HTML component does.
import { mount } from "../player.js";
import { lifeline } from "./lifeline.js";

const unpack = (value) => (value && value.b64 ? JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(value.b64), (c) => c.charCodeAt(0)))) : null);

// `common`: options of `mount` that are the same for every run. `server`: null, or what fetches a packed run by its scenario's name.
export function attach(element, props, watch, server, common) {
  const root = element.querySelector(".fs-root");
  const loadRun = server ? async (id) => JSON.parse(await server.packed_run(id).catch((error) => { throw new Error(String(error)); })) : undefined;
  let player = null, value = null;
  const show = () => {
    const before = value;
    value = unpack(props.value) || before;
    if (!value) return;
    if (player && before.key === value.key) { player.setReason(value.reason); return; }
    if (player) { player.setRun(value.run, value); return; }
    player = mount(root, { ...common, ...value, loadRun, files: () => value.files || {} });
    window.fusescope = player;
    // A page may hold several: the one that is seen last is the one that is spoken of.
    new IntersectionObserver(([entry]) => { if (entry.isIntersecting) window.fusescope = player; }).observe(root);
    if (player && value.engine) lifeline(player.setLine);
  };
  watch("value", show);
  show();
}
