// Draws the fidelity strips: per method one row of bars over layers, keys solid and values as a stepped line, on one scale for all.
import { decimals, NONE } from "../core/words.js";
import { fit } from "./fit.js";

export function fidelityGeometry(scene, w, size, room) {
  const narrow = w < 640, left = narrow ? size * 0.4 : size * 11.5, right = narrow ? size * 0.4 : size * 13, label = narrow ? size * 1.5 : 0;
  const row = Math.max(size * 1.5, Math.min(size * 6, room ? (room - size * 3.4) / Math.max(1, scene.rows.length) - label : size * 3.4)) + label, top = size * 1.7;
  return { w, size, narrow, left, right, label, row, top, width: w - left - right, h: top + scene.rows.length * row + size * 1.5 };
}

// `view`: {label(name), say, locale, method, layer}.
export function drawFidelity(pen, scene, geo, view, colors) {
  drawKey(pen, scene, geo, view, colors);
  scene.rows.forEach((row, i) => drawRow(pen, scene, geo, row, geo.top + i * geo.row, view, colors));
  const y = geo.top + scene.rows.length * geo.row + geo.size * 0.75, per = geo.width / scene.numLayers, every = Math.max(1, Math.ceil((geo.size * 2) / per / 5) * 5);
  for (let layer = 0; layer < scene.numLayers; layer += every) pen.text(String(layer), geo.left + (layer + 0.5) * per, y, { size: geo.size * 0.86, color: colors.muted, align: "center" });
  if (!geo.narrow) pen.text(view.say("layer"), geo.left - geo.size * 0.5, y, { size: geo.size * 0.86, color: colors.muted, align: "right" });
}

function drawKey(pen, scene, geo, view, colors) {
  const y = geo.size * 0.75, look = { size: geo.size * 0.92, color: colors.muted };
  pen.rect(geo.left, y - geo.size * 0.35, geo.size * 0.7, geo.size * 0.7, colors.loaded);
  pen.text(view.say("keys"), geo.left + geo.size, y, look);
  const next = geo.left + geo.size * 2 + pen.width(view.say("keys"), look);
  pen.line(next, y, next + geo.size, y, colors.ink, 2.5);
  pen.text(view.say("values"), next + geo.size * 1.3, y, look);
  const text = view.say("full_height", { value: decimals(scene.top, 2, view.locale) });
  const room = geo.left + geo.width - (next + geo.size * 2.3 + pen.width(view.say("values"), look));
  if (pen.width(text, look) < room) pen.text(text, geo.left + geo.width, y, { ...look, align: "right" });
  if (!geo.narrow) {
    pen.text(view.say("kl_short"), geo.left + geo.width + geo.size, y, look);
    pen.text(view.say("differs_short"), geo.w - geo.size * 0.3, y, { ...look, align: "right" });
  }
}

function drawRow(pen, scene, geo, row, y, view, colors) {
  const top = y + geo.label + 3, h = geo.row - geo.label - 8, per = geo.width / scene.numLayers, base = top + h, color = colors.methods[row.name] || colors.muted;
  const kl = row.kl === null ? NONE : decimals(row.kl, 3, view.locale), differs = row.diverges === null ? view.say("nowhere") : `${row.diverges + 1}`, look = { size: geo.size * 0.92, color: colors.ink, align: "right" };
  const said = `KL ${kl} · ${row.diverges === null ? view.say("same_as_full") : view.say("differs_at", { token: differs })}`;
  const bold = row.name === view.method, name = fit(pen, view.label(row.name), { size: geo.size, bold }, geo.narrow ? geo.w - pen.width(said, look) - geo.size * 2 : geo.left - geo.size * 1.4);
  pen.rect(0, y + 3, 5, geo.row - 8, color);
  pen.text(name, geo.size * 0.8, geo.narrow ? y + geo.size * 0.9 : top + h / 2, { size: geo.size, bold, color: colors.ink });
  pen.rect(geo.left, top, geo.width, h, colors.waiting, 0.6);
  if (row.keys) {
    row.keys.forEach((value, layer) => pen.rect(geo.left + layer * per, base - (value / scene.top) * h, Math.max(1, per - 1.5), (value / scene.top) * h, colors.loaded));
    row.values.forEach((value, layer) => {
      const x = geo.left + layer * per, at = base - (value / scene.top) * h;
      pen.line(x, at, x + per, at, colors.ink, 2);
      if (layer) pen.line(x, base - (row.values[layer - 1] / scene.top) * h, x, at, colors.ink, 2);
    });
  } else pen.text(view.say("no_kv"), geo.left + geo.size, top + h / 2, { size: geo.size * 0.9, color: colors.muted });
  pen.line(geo.left, base, geo.left + geo.width, base, colors.muted, 1);
  if (geo.narrow) pen.text(said, geo.w - geo.size * 0.4, y + geo.size * 0.9, look);
  else {
    pen.text(kl, geo.left + geo.width + geo.size, top + h / 2, { size: geo.size * 1.3, bold: true, color: colors.ink });
    pen.text(differs, geo.w - geo.size * 0.3, top + h / 2, { size: geo.size, color: colors.ink, align: "right" });
  }
}
