// Says when the server behind the page is gone and when it is back, without a request of its own while all is well: the page keeps one
// stream open as long as it lives, and the browser reports when that ends or another request of the page got no answer. Only then is the
// server asked, by an address that costs nothing.

const OWN = "/gradio_api/", STREAM = `${OWN}heartbeat/`, PROBE = "app_id", FIRST_MS = 500, LONGEST_MS = 5000, GROWTH = 1.5, BACK_MS = 8000, MARK = "fusescope-offline";

// `tell`: gets "offline", "back" and "".
export function lifeline(tell) {
  let asking = false;
  const say = (line) => {
    tell(line);
    if (line === "back") setTimeout(() => !asking && tell(""), BACK_MS);
  };
  // The page reloads itself when its server is back; the mark outlives that.
  if (sessionStorage.getItem(MARK)) { sessionStorage.removeItem(MARK); say("back"); }

  const isBack = async (address) => {
    try { return (await fetch(address, { cache: "no-store" })).ok; } catch (error) { if (!(error instanceof TypeError)) throw error; return false; }
  };
  async function ask(address) {
    if (asking) return;
    asking = true;
    for (let pause = FIRST_MS; !(await isBack(address)); pause = Math.min(LONGEST_MS, pause * GROWTH)) {
      if (!sessionStorage.getItem(MARK)) { sessionStorage.setItem(MARK, "1"); say("offline"); }
      await new Promise((done) => setTimeout(done, pause));
    }
    asking = false;
    if (!sessionStorage.getItem(MARK)) return;
    sessionStorage.removeItem(MARK);
    say("back");
  }
  new PerformanceObserver((list) => {
    for (const { name, responseStatus } of list.getEntries()) {
      const at = name.startsWith(window.location.origin) ? name.indexOf(OWN) : -1;
      if (at > 0 && (name.startsWith(STREAM, at) || responseStatus === 0)) ask(name.slice(0, at + OWN.length) + PROBE);
    }
  }).observe({ type: "resource" });
}
