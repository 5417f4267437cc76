// The address of what is looked at: written while one looks, and handed out as a link. `options`: url (keep the state in the address),
// linkBase (what a link begins with instead of this page's own address), tab and view (where in a page around it the player stands, under these names).
import { toQuery } from "../core/url.js";

// Browsers limit how often an address may change: scrubbing would change it in every frame, playing goes on for long.
const PAUSE_MS = 150, PLAYING_MS = 1000;

export function createAddress(options, { state, seen }) {
  let waiting = null, last = 0;
  const query = (others) => toQuery(options.tab ? { ...state(), tab: options.tab } : state(), others), place = options.view && `view=${options.view}`;
  const here = () => window.location.href.replace(/[?#].*$/u, "");
  const joined = (base, search) => (search ? `${base}${base.includes("?") ? "&" : "?"}${search}` : base);

  function write() {
    waiting = null;
    last = performance.now();
    // Another tab of the page may be chosen by now (viz/panels/address.py names it) or shown; the address is its own.
    if (options.tab && (document.body.dataset.tab || options.tab) !== options.tab) return;
    const search = query(window.location.search);
    if (!options.url || !seen() || search === window.location.search.replace(/^\?/u, "")) return;
    window.history.replaceState(window.history.state, "", `${window.location.pathname}${search ? `?${search}` : ""}${window.location.hash}`);
    // Spaces show the page in a frame, and keep the frame's query in their own address where they are told of it.
    if (window.parent !== window && window.location.hostname.endsWith(".hf.space")) window.parent.postMessage({ queryString: search, hash: window.location.hash }, "https://huggingface.co");
  }
  return {
    link: () => joined(options.linkBase || here(), query(place)),
    // A window of this page, wherever a link to it would lead.
    local: (extra) => joined(joined(here(), query(place)), extra),
    follow() {
      if (!options.url) return;
      if (!state().playing) { clearTimeout(waiting); waiting = setTimeout(write, PAUSE_MS); } else if (!waiting && performance.now() - last > PLAYING_MS) write();
    },
    stop: () => clearTimeout(waiting),
  };
}
