// The static site: runs lie beside the page as files and are fetched when they are asked for.
import { mount } from "../player.js";

const read = async (address) => {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.json();
};

const start = async () => {
  const site = await read("site.json"), entryOf = (id) => site.runs.find((run) => run.id === id);
  const query = new URLSearchParams(window.location.search), asked = query.get("sc"), packedOf = (id) => read(entryOf(id).packed);
  const filesOf = (id, method) => { const entry = entryOf(id); return entry ? { run: entry.files ? entry.files[method] : entry.file, html: entry.html } : {}; };
  const first = entryOf(asked) || site.runs.find((run) => run.tab && run.tab === query.get("tab")) || entryOf(site.first) || site.runs[0];
  window.fusescope = mount(document.getElementById("player"), { ...site, run: await packedOf(first.id), loadRun: packedOf, url: true, files: filesOf });
};

start();
