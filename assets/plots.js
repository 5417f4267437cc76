// How Gradio's pictures are drawn. It hands a new one to Plotly twice, the second time in a place made anew, seen or not, all in one go.
// Here a picture is drawn once: in the next frame where it is near the window, in a quiet moment where it is further down, and where
// its tab is not open, when it is. One that a window of another size has left behind takes its width as soon as it is seen.
// Gradio 6.31 hands Plotly out as window.Plotly. Should it not any more, pictures are drawn its own way.
() => {
  const isShown = (plot) => plot.isConnected && plot.offsetParent !== null;
  const nearest = (plots) => {
    const away = new Map(plots.map((plot) => [plot, Math.abs(plot.getBoundingClientRect().top)]));
    return plots.sort((one, other) => away.get(one) - away.get(other))[0];
  };
  const mend = (plotly) => {
    const { react } = plotly, { resize } = plotly.Plots;
    // Of each plot, what is to be drawn and what was, as the text of what Plotly was given, which it writes into.
    const waiting = new Map(), drawn = new WeakMap(), near = new WeakSet();
    // Plots that are on the page, with the width they were last fitted to: where Plotly wants another one, it is not asked again.
    const fitted = new Map();
    const isStale = (plot) => plot._fullLayout && Math.abs(plot._fullLayout.width - plot.clientWidth) > 2 && fitted.get(plot) !== plot.clientWidth;
    const fit = (plot) => {
      fitted.set(plot, plot.clientWidth);
      return resize(plot);
    };
    const draw = (plot) => {
      const call = waiting.get(plot);
      waiting.delete(plot);
      if (!call || !plot.isConnected) return;
      const text = JSON.stringify(call);
      if (drawn.get(plot) === text) return;
      drawn.set(plot, text);
      plot.style.minHeight = "";
      react(plot, ...call);
    };
    const idle = window.requestIdleCallback || ((work) => window.setTimeout(work, 100));
    let isAsked = false;
    const ask = () => {
      if (isAsked) return;
      isAsked = true;
      idle(() => {
        isAsked = false;
        for (const known of [waiting, fitted]) for (const plot of known.keys()) if (!plot.isConnected) known.delete(plot);
        const next = nearest([...waiting.keys()].filter(isShown)) || [...fitted.keys()].find((plot) => isShown(plot) && isStale(plot));
        if (!next) return;
        if (waiting.has(next)) draw(next); else fit(next);
        ask();
      }, { timeout: 2000 });
    };
    const watcher = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) near.add(target); else near.delete(target);
        if (!isIntersecting) continue;
        if (waiting.has(target)) draw(target); else if (isStale(target)) fit(target);
      }
      ask();
    }, { rootMargin: "300px 0px" });
    plotly.react = (plot, ...call) => {
      waiting.set(plot, call);
      // Room for it, so that what stands below is not taken for near.
      if (!plot._fullLayout) plot.style.minHeight = `${call[1]?.height || 0}px`;
      if (near.has(plot) && isShown(plot)) window.requestAnimationFrame(() => draw(plot));
      else watcher.observe(plot);
      if (!fitted.has(plot)) fitted.set(plot, 0);
      ask();
      return Promise.resolve(plot);
    };
    plotly.Plots.resize = (plot) => (waiting.has(plot) || !isStale(plot) ? Promise.resolve(plot) : fit(plot));
    window.addEventListener("beforeprint", () => [...waiting.keys()].filter(isShown).forEach(draw));
  };
  let plotly = window.Plotly;
  if (plotly) mend(plotly);
  else Object.defineProperty(window, "Plotly", { configurable: true, get: () => plotly, set: (value) => { if (value !== plotly) mend(value); plotly = value; } });
}
