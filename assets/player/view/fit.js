// Cuts a label where it has no room.
export function fit(pen, text, look, room) {
  if (pen.width(text, look) <= room) return text;
  let letters = [...text];
  while (letters.length > 1 && pen.width(`${letters.join("")}…`, look) > room) letters = letters.slice(0, -1);
  return `${letters.join("").trimEnd()}…`;
}
