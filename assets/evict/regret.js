// Who suffered from the evictions of one bar of the strip: press a bar, or step with the buttons.
let data = null, bin = 0;

const step = (text, label, way) => {
  const button = node("button", "fs-more", text);
  button.type = "button";
  button.setAttribute("aria-label", label);
  button.disabled = bin + way < 0 || bin + way >= data.bins.length;
  button.onclick = () => { bin += way; draw(); root.querySelectorAll(".fs-more")[way < 0 ? 0 : 1].focus(); };
  return button;
};

const draw = () => {
  if (!data) return show();
  const chosen = data.bins[bin], head = node("div", "fs-evict-step");
  head.append(step("◂", "Bar before", -1), node("strong", "", chosen.label), step("▸", "Next bar", 1));
  const list = node("ul", "fs-evict-cases");
  for (const text of chosen.cases) {
    const line = node("li");
    line.append(node("bdi", "", text));
    list.append(line);
  }
  show(head, chosen.cases.length ? list : node("p", "fs-muted", "No eviction here cost a hit that MIN would have had."));
};

// A picture that is drawn anew is another element, so its clicks are asked for again.
const strip = document.getElementById("evict-regret");
const listen = () => {
  const plot = strip && strip.querySelector(".js-plotly-plot");
  if (!plot || !plot.on || plot.fsListens) return;
  plot.fsListens = true;
  plot.on("plotly_click", (event) => {
    const number = event.points[0].customdata;
    if (data && Number.isInteger(number) && number < data.bins.length) { bin = number; draw(); }
  });
};
if (strip) new MutationObserver(listen).observe(strip, { childList: true, subtree: true });
listen();
root.setAttribute("aria-live", "polite");
play(() => { data = unpack(); bin = data ? data.start : 0; draw(); });
