// Ways to take the picture along: link, run file, one-file page, Chrome trace, PNG, SVG, CSV.
import { chromeTrace } from "../core/chrome_trace.js";
import { methodsCsv } from "../core/csv.js";
import { button, el, keyed, write } from "./dom.js";
import { canvasPen } from "./pen_canvas.js";
import { svgPen } from "./pen_svg.js";
import { drawPoster, posterPlan } from "./poster.js";

// `files(scenario, method, mode)`: addresses of the run file and the one-file page, as far as there are any. `link()`: address of what is shown.
export function createExports({ files, link, current }) {
  const row = el("div", { class: "fp-exports" }), told = el("span", { class: "fp-note", role: "status" }), field = el("input", { class: "fp-link", readonly: true, hidden: true });
  const node = el("section", { class: "fp-panel fp-export-panel" }, row, told, field);
  const copy = async () => {
    const { model } = current(), { provenance } = model.run, address = link();
    field.value = address;
    field.setAttribute("aria-label", model.say("copy_link"));
    field.hidden = false;
    if (!navigator.clipboard) { field.select(); write(told, model.say("copy_by_hand")); return; }
    await navigator.clipboard.writeText(address).then(() => { field.hidden = true; write(told, model.say(provenance.mode === "live" || provenance.is_fresh ? "copied_live" : "copied")); }, () => { field.select(); write(told, model.say("copy_by_hand")); });
  };
  const draw = keyed(row, (say, run, scenario, offered, method) => [
    el("h2", { class: "fp-title", text: say("exports_title") }),
    button(say("copy_link"), copy),
    offered.run && el("a", { class: "fp-button", href: offered.run, download: run.tab ? `fusescope-${nameOf(scenario)}-${nameOf(method)}.cache.json.gz` : `fusescope-${nameOf(scenario)}.run.json.gz`, text: say("export_run") }),
    offered.html && el("a", { class: "fp-button", href: offered.html, download: `fusescope-${nameOf(scenario)}.html`, text: say("export_html") }),
    !run.tab && button(say("export_trace"), () => { const { model } = current(); save("trace.json", "application/json", JSON.stringify(chromeTrace(model.run, model.label)), scenario); }),
    button("PNG", () => savePng(current(), scenario)), button("SVG", () => save("svg", "image/svg+xml", posterSvg(current()), scenario)),
    button("CSV", () => save("csv", "text/csv", `\ufeff${methodsCsv(current().model.run)}`, scenario)),
  ]);
  return { node, update: ({ run, method, say }) => draw(`${run.id} ${run.tab && method.name} ${say.lang}`, say, run, run.scenario, files(run.scenario, method.name, run.provenance.mode), method.name) };
}

const nameOf = (scenario) => (scenario || "run").replace(/[^A-Za-z0-9]+/gu, "-").slice(0, 60);

export function posterSvg({ model, token }) {
  const plan = posterPlan(model), { pen, svg } = svgPen();
  drawPoster(pen, plan, model, token);
  return svg(plan.width, plan.height, model.colors.panel, model.title);
}

function savePng({ model, token }, scenario) {
  const plan = posterPlan(model), canvas = document.createElement("canvas");
  canvas.width = plan.width * 2;
  canvas.height = plan.height * 2;
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  context.fillStyle = model.colors.panel;
  context.fillRect(0, 0, plan.width, plan.height);
  drawPoster(canvasPen(context, 2), plan, model, token);
  canvas.toBlob((blob) => saveBlob("png", blob, scenario), "image/png");
}

const save = (ending, type, text, scenario) => saveBlob(ending, new Blob([text], { type }), scenario);

function saveBlob(ending, blob, scenario) {
  const url = URL.createObjectURL(blob), anchor = el("a", { href: url, download: `fusescope-${nameOf(scenario)}.${ending}` });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  // The download has begun by the next turn; a minute is more than it needs to be read.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
