// Three rows over the map: tokens recomputed only for question A, for both, only for B. Colour and hatch; each row is named beside it.
import { stretches } from "../core/map_scene.js";

const HATCH = ["/", null, "\\"], NAMES = ["flip_a", "flip_both", "flip_b"];

export const flipHeight = (size) => size * 2.7;

// `shares`: per row the share of each column's tokens. `y`: where the rows begin.
export function drawFlip(pen, shares, geo, y, say, colors) {
  const row = (flipHeight(geo.size) - geo.size * 0.3) / 3, per = geo.width / shares[0].length, look = { size: geo.size * 0.8, color: colors.ink };
  shares.forEach((values, i) => {
    const top = y + i * row, h = row - 2;
    pen.rect(geo.left, top, geo.width, h, colors.waiting);
    for (const [start, stop, step] of stretches(Array.from(values, (share) => Math.ceil(share * 4)))) {
      if (!step) continue;
      const x = geo.left + start * per, w = (stop - start) * per;
      pen.rect(x, top, w, h, colors.flip[i], 0.4 + step * 0.15);
      if (w >= 4) pen.hatch(x, top, w, h, HATCH[i], colors.panel, 0.7);
    }
    if (!geo.narrow) pen.text(say(NAMES[i]), geo.left + geo.width + geo.size * 0.5, top + h / 2, look);
    pen.text(["A", "AB", "B"][i], geo.left - geo.size * 0.45, top + h / 2, { ...look, align: "right", bold: true });
  });
}
