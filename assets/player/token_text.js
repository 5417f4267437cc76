// Chunk text with one span per token; pointing at a token (or arrow keys) tells its rank, score and who recomputes it.
// Linked with the figures over prompt positions: pointing here points there, and the other way round.
const RECOMPUTED = 1, ANCHOR = 2, ANSWER = 4, FIRST = 2000, MORE = 4000;
let data = null, detail = null, current = null;

const describe = (position) => {
  const i = position - data.offset;
  const chunk = data.chunks.find((c) => position >= c.start && position < c.start + c.tokens.length);
  const flags = Number(chunk.flags[position - chunk.start]);
  const parts = [`position ${position.toLocaleString("en")}`, `chunk ${chunk.number}`, flags & RECOMPUTED ? "recomputed" : "loaded from cache"];
  if (data.ranks) parts.push(`rank ${data.ranks[i].toLocaleString("en")} of ${data.total.toLocaleString("en")}`);
  if (data.scores) parts.push(`score ${data.scores[i].toExponential(2)}`);
  if (flags & ANCHOR) parts.push("anchor");
  if (flags & ANSWER) parts.push("holds the answer");
  if (data.choices.length) {
    const names = data.choices.filter(([, mask]) => mask[i] === "1").map(([name]) => name);
    parts.push(`recomputed by ${names.length} of ${data.choices.length} methods${names.length ? ": " : ""}${names.join(", ")}`);
  }
  return [chunk.tokens[position - chunk.start], parts.join(" · ")];
};

const FIGURES = ["fuse-map", "fuse-attention", "fuse-agreement"];

// Points at the same position in the figures that are on the page.
const linkFigures = (position) => {
  for (const id of FIGURES) {
    const plot = document.querySelector(`#${id} .js-plotly-plot`);
    if (plot && window.Plotly) window.Plotly.Fx.hover(plot, { xval: position + 0.5, yval: 1 }, ["xy"]);
  }
};

const mark = (span) => {
  if (current) current.classList.remove("fs-token-current");
  current = span;
  span.classList.add("fs-token-current");
  const [text, facts] = describe(Number(span.dataset.p));
  detail.replaceChildren(node("bdi", "fs-token-name", `“${text}”`), node("span", "", ` ${facts}`));
};

const point = (span) => { mark(span); linkFigures(Number(span.dataset.p)); };

// Marks the token under the pointer of a figure, and scrolls the text (not the page) to it.
const fromFigure = (event) => {
  if (!event.event || !event.points.length) return;
  const frame = root.querySelector(".fs-text-frame");
  const span = frame && frame.querySelector(`[data-p="${Math.floor(event.points[0].x)}"]`);
  if (!span || span === current) return;
  mark(span);
  const place = span.getBoundingClientRect(), box = frame.getBoundingClientRect();
  if (place.top < box.top || place.bottom > box.bottom) frame.scrollTop += place.top - box.top - box.height / 3;
};

// Gradio makes a new plot for every new figure; entering it is when it is there for sure.
const listen = () => {
  for (const id of FIGURES) {
    const holder = document.getElementById(id);
    if (!holder) continue;
    holder.onpointermove = () => {
      const plot = holder.querySelector(".js-plotly-plot");
      if (!plot || !plot.on || plot.fsListener === fromFigure) return;
      if (plot.fsListener) plot.removeListener("plotly_hover", plot.fsListener);
      plot.fsListener = fromFigure;
      plot.on("plotly_hover", fromFigure);
    };
  }
};

const tokenSpan = (chunk, i) => {
  const flags = Number(chunk.flags[i]);
  const span = node("span", "fs-token", chunk.tokens[i]);
  if (flags & RECOMPUTED) span.classList.add("fs-recomputed");
  if (flags & ANCHOR) span.classList.add("fs-anchor");
  if (flags & ANSWER) span.classList.add("fs-answer-span");
  span.dataset.p = chunk.start + i;
  return span;
};

const drawTokens = (text, chunk, from, count) => {
  const stop = Math.min(chunk.tokens.length, from + count);
  const part = document.createDocumentFragment();
  for (let i = from; i < stop; i++) part.append(tokenSpan(chunk, i));
  text.append(part);
  if (stop >= chunk.tokens.length) return;
  const more = node("button", "fs-more", `Show more (${(chunk.tokens.length - stop).toLocaleString("en")} tokens hidden)`);
  more.type = "button";
  more.onclick = () => { more.remove(); drawTokens(text, chunk, stop, MORE); };
  text.append(more);
};

const drawChunk = (chunk) => {
  const section = node("section", "fs-chunk-text");
  const head = node("h4", "");
  head.append(node("span", "fs-chunk-number", String(chunk.number)), node("bdi", "", chunk.title),
    node("span", "fs-muted", ` ${chunk.recomputed.toLocaleString("en")} of ${chunk.tokens.length.toLocaleString("en")} tokens recomputed · ${chunk.cache}`));
  const text = node("div", "fs-tokens");
  text.dir = "auto";
  drawTokens(text, chunk, 0, FIRST);
  section.append(head, text);
  return section;
};

const legend = () => {
  const line = node("div", "fs-legend");
  for (const [className, label] of [["fs-recomputed", "recomputed"], ["", "loaded from cache"], ["fs-anchor", "anchor (stands in for its chunk while the question is probed)"], ["fs-answer-span", "holds the answer"]]) {
    const item = node("span", "fs-legend-item");
    item.append(node("span", `fs-token ${className}`, "token"), node("span", "", ` ${label}`));
    line.append(item);
  }
  return line;
};

play(() => {
  data = unpack();
  current = null;
  if (!data) return show();
  if (!data.chunks.length) return show(node("p", "fs-empty", data.reason));
  detail = node("p", "fs-token-detail", "Point at a token, or press Tab and the arrow keys, to see its rank and score.");
  detail.setAttribute("aria-live", "polite");
  const frame = node("div", "fs-text-frame");
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", "Chunk text, token by token; arrow keys move");
  frame.append(...data.chunks.map(drawChunk));
  frame.addEventListener("pointerover", (event) => event.target.dataset && event.target.dataset.p && point(event.target));
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...frame.querySelectorAll("[data-p]")];
    const next = all[Math.min(all.length - 1, Math.max(0, all.indexOf(current) + step))];
    point(next);
    next.scrollIntoView({ block: "nearest" });
  });
  show(legend(), detail, frame);
  listen();
});
