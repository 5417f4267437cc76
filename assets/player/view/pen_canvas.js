// Draws on a canvas. The same calls as pen_svg.js, so that a picture is written once and can be put on screen and into a file.
import { HATCHES, TILE } from "./hatch.js";

export const FONT = '"Source Sans Pro", "Source Sans 3", system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", sans-serif';

// `sprites` keeps what is costly and used again: stamps, hatches, and the widths of texts.
export function canvasPen(context, scale, sprites = new Map()) {
  const patterns = sprites.get("patterns") || new Map();
  sprites.set("patterns", patterns);

  const pattern = (kind, color) => {
    const key = kind + color;
    if (!patterns.has(key)) patterns.set(key, makePattern(context, kind, color, scale));
    return patterns.get(key);
  };
  const withAlpha = (alpha, draw) => { context.globalAlpha = alpha; draw(); context.globalAlpha = 1; };
  const font = ({ size, bold, mono }) => `${bold ? 700 : 400} ${size}px ${mono ? "ui-monospace, monospace" : FONT}`;

  return {
    rect: (x, y, w, h, color, alpha = 1) => withAlpha(alpha, () => { context.fillStyle = color; context.fillRect(x, y, w, h); }),
    hatch: (x, y, w, h, kind, color, alpha = 1) => kind && withAlpha(alpha, () => { context.fillStyle = pattern(kind, color); context.fillRect(x, y, w, h); }),
    frame: (x, y, w, h, color, width = 1, dash = []) => { context.strokeStyle = color; context.lineWidth = width; context.setLineDash(dash); context.strokeRect(x, y, w, h); context.setLineDash([]); },
    line: (x1, y1, x2, y2, color, width = 1, dash = []) => {
      context.strokeStyle = color; context.lineWidth = width; context.setLineDash(dash);
      context.beginPath(); context.moveTo(x1, y1); context.lineTo(x2, y2); context.stroke(); context.setLineDash([]);
    },
    path: (points, color, width, dash = []) => {
      context.strokeStyle = color; context.lineWidth = width; context.setLineDash(dash); context.lineJoin = "round"; context.beginPath();
      for (const [x, y] of points) context.lineTo(x, y);
      context.stroke(); context.setLineDash([]);
    },
    shape: (points, color, alpha = 1) => withAlpha(alpha, () => {
      context.fillStyle = color; context.beginPath();
      points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.closePath(); context.fill();
    }),
    text: (text, x, y, { size, color, align = "left", bold = false, mono = false, halo = null }) => {
      context.font = font({ size, bold, mono }); context.textAlign = align; context.textBaseline = "middle";
      if (halo) { context.strokeStyle = halo; context.lineWidth = size / 3.5; context.lineJoin = "round"; context.strokeText(text, x, y); }
      context.fillStyle = color; context.fillText(text, x, y);
    },
    width: (text, look) => {
      const face = font(look), key = `width ${face} ${text}`;
      if (!sprites.has(key)) { context.font = face; sprites.set(key, context.measureText(text).width); }
      return sprites.get(key);
    },
    // Something drawn once and stamped often; `draw` gets a pen whose origin is the stamp's corner.
    stamp: (key, x, y, w, h, draw) => {
      if (!sprites.has(key)) sprites.set(key, makeSprite(w, h, scale, draw));
      context.drawImage(sprites.get(key), x, y, w, h);
    },
  };
}

function makeSprite(w, h, scale, draw) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(w * scale));
  canvas.height = Math.max(1, Math.round(h * scale));
  const context = canvas.getContext("2d");
  context.scale(canvas.width / w, canvas.height / h);
  draw(canvasPen(context, scale));
  return canvas;
}

function makePattern(context, kind, color, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = TILE * scale;
  const tile = canvas.getContext("2d");
  tile.scale(scale, scale);
  tile.strokeStyle = color;
  tile.lineWidth = 1.3;
  for (const [x1, y1, x2, y2] of HATCHES[kind]) { tile.beginPath(); tile.moveTo(x1, y1); tile.lineTo(x2, y2); tile.stroke(); }
  const made = context.createPattern(canvas, "repeat");
  made.setTransform(new DOMMatrix().scale(1 / scale));
  return made;
}

// Sizes a canvas to its box and returns a pen over it, cleared. Two pixels per point at most: more costs time and is not seen.
export function penFor(canvas, width, height, sprites) {
  const scale = Math.min(2, window.devicePixelRatio || 1), w = Math.round(width * scale), h = Math.round(height * scale);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return canvasPen(context, scale, sprites);
}
