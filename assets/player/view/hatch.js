// Hatches as line segments of a square tile, so that screen and SVG draw the same ones. The second channel beside every colour.

export const TILE = 8;
export const HATCHES = {
  "/": [[-2, 6, 6, -2], [-2, 14, 14, -2], [2, 10, 10, 2]],
  "\\": [[-2, 2, 6, 10], [2, -2, 10, 6]],
  x: [[0, 0, 8, 8], [0, 8, 8, 0]],
  "-": [[0, 4, 8, 4]],
  "|": [[4, 0, 4, 8]],
  "+": [[0, 4, 8, 4], [4, 0, 4, 8]],
  ".": [[2, 2, 3.2, 2], [6, 6, 7.2, 6]],
};
