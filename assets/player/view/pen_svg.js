// Draws into SVG text with the calls of pen_canvas.js. Knows no DOM; every text is escaped.
import { HATCHES, TILE } from "./hatch.js";
import { FONT } from "./pen_canvas.js";

const escape = (text) => String(text).replace(/[\u0000-\u0008\u000b-\u001f]/gu, "\ufffd").replace(/&/gu, "&amp;").replace(/</gu, "&lt;").replace(/>/gu, "&gt;").replace(/"/gu, "&quot;");
const n = (value) => String(Math.round(value * 100) / 100);

// Rough, but only used to decide whether a label has room: letters of other scripts are counted as wide.
const roughWidth = (text, { size, bold }) => [...text].reduce((sum, letter) => sum + (letter.codePointAt(0) > 0x2e80 ? 1 : 0.54), 0) * size * (bold ? 1.06 : 1);

export function svgPen() {
  const parts = [], patterns = new Map();
  const opacity = (alpha) => (alpha === 1 ? "" : ` fill-opacity="${n(alpha)}"`);
  const dashed = (dash) => (dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "");
  const patternOf = (kind, color) => {
    const key = kind + color;
    if (!patterns.has(key)) patterns.set(key, { id: `h${patterns.size}`, kind, color });
    return patterns.get(key).id;
  };
  const pen = {
    rect: (x, y, w, h, color, alpha = 1) => parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(Math.max(0, w))}" height="${n(Math.max(0, h))}" fill="${escape(color)}"${opacity(alpha)}/>`),
    hatch: (x, y, w, h, kind, color, alpha = 1) => kind && pen.rect(x, y, w, h, `url(#${patternOf(kind, color)})`, alpha),
    frame: (x, y, w, h, color, width = 1, dash = []) => parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="none" stroke="${escape(color)}" stroke-width="${width}"${dashed(dash)}/>`),
    line: (x1, y1, x2, y2, color, width = 1, dash = []) => parts.push(`<line x1="${n(x1)}" y1="${n(y1)}" x2="${n(x2)}" y2="${n(y2)}" stroke="${escape(color)}" stroke-width="${width}"${dashed(dash)}/>`),
    path: (points, color, width, dash = []) => parts.push(`<polyline points="${points.map(([x, y]) => `${n(x)},${n(y)}`).join(" ")}" fill="none" stroke="${escape(color)}" stroke-width="${width}"${dashed(dash)}/>`),
    shape: (points, color, alpha = 1) => parts.push(`<polygon points="${points.map(([x, y]) => `${n(x)},${n(y)}`).join(" ")}" fill="${escape(color)}"${opacity(alpha)}/>`),
    text: (text, x, y, { size, color, align = "left", bold = false, mono = false, halo = null }) => {
      const anchor = { left: "start", center: "middle", right: "end" }[align], edge = halo ? ` stroke="${escape(halo)}" stroke-width="${n(size / 3.5)}" paint-order="stroke"` : "";
      const family = mono ? ' font-family="ui-monospace, monospace"' : "";
      parts.push(`<text x="${n(x)}" y="${n(y)}" font-size="${n(size)}" text-anchor="${anchor}" dominant-baseline="central" fill="${escape(color)}"${bold ? ' font-weight="700"' : ""}${family}${edge}>${escape(text)}</text>`);
    },
    width: roughWidth,
    stamp: (key, x, y, w, h, draw) => { parts.push(`<g transform="translate(${n(x)} ${n(y)})">`); draw(pen); parts.push("</g>"); },
  };
  const defs = () => [...patterns.values()].map(({ id, kind, color }) => {
    const lines = HATCHES[kind].map(([x1, y1, x2, y2]) => `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="${escape(color)}" stroke-width="1.3"/>`).join("");
    return `<pattern id="${id}" width="${TILE}" height="${TILE}" patternUnits="userSpaceOnUse">${lines}</pattern>`;
  }).join("");
  const svg = (width, height, background, title) =>
    `<svg xmlns="http://www.w3.org/2000/svg" width="${n(width)}" height="${n(height)}" viewBox="0 0 ${n(width)} ${n(height)}" font-family='${FONT}' role="img"><title>${escape(title)}</title>` +
    `<defs>${defs()}</defs><rect width="100%" height="100%" fill="${escape(background)}"/>${parts.join("")}</svg>`;
  return { pen, svg };
}
