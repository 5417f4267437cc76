// The player: mount(element, options) shows a packed run and returns a handle. One state, one playhead, everything else follows.
//
// options: run (packed), looks, strings, tour; and as far as there are any: runs [{id, title}] with loadRun(id) -> Promise of a packed run,
// times (benchmark points for the budget), files(scenario) -> {run, html}, url and linkBase and tab (see view/address.js), autoplay, onLive,
// ghost (packed: the other run of the pair live and recorded), flip (packed: another question over the same chunks), engine (runs can be made here).
import { decodeRun, methodOf } from "./core/decode.js";
import { flipOf, sameDocuments } from "./core/flip.js";
import { arePair, comparable } from "./core/ghost.js";
import { actionOf } from "./core/keys.js";
import { decode, kindOf } from "./core/kinds.js";
import { reduce, START } from "./core/state.js";
import { sceneState, sentenceOf, titleOf } from "./core/tour.js";
import { fromQuery, shared } from "./core/url.js";
import { phrasebook, pickLanguage } from "./core/words.js";
import { createAddress } from "./view/address.js";
import { showNotes, speakerNotes } from "./view/notes.js";
import { verdictOf } from "./view/header.js";
import { createUi } from "./view/ui.js";

export { decodeRun };

const NO_FILES = () => ({});

export function mount(element, options) {
  const query = options.url ? window.location.search : "", asked = fromQuery(query), notesId = new URLSearchParams(query).get("notes");
  if (options.tab) delete asked.tab;
  if (notesId) { showNotes(element, notesId); return null; }
  return new Player(element, { files: NO_FILES, runs: [], tour: [], ...options }, asked).handle();
}

const without = (options, name) => Object.fromEntries(Object.entries(options).filter(([key]) => key !== name));

class Player {
  constructor(element, options, asked) {
    this.options = { ...options };
    this.hovered = null;
    this.reason = options.reason || "";
    this.loads = 0;
    this.taken = 0;
    this.quiet = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.dispatch = this.dispatch.bind(this);
    this.onKey = this.onKey.bind(this);
    this.frame = this.frame.bind(this);
    this.address = createAddress(options, { state: () => this.state, seen: () => this.seen() });
    this.notes = speakerNotes(this.dispatch, (id) => this.address.local(`notes=${id}`));
    this.ui = createUi(element, { dispatch: this.dispatch, hover: (token) => this.hover(token), times: () => this.options.times, link: this.address.link, redraw: () => this.schedule(), current: () => ({ model: this.model(), token: this.token() }), ...without(options, "times") });
    this.state = START;
    this.take(options.run, options);
    this.restore(asked);
    document.addEventListener("keydown", this.onKey);
    this.schedule();
  }

  // Opens a run: what is looked at stays as far as the new run has it.
  take(packed, { ghost, flip } = {}) {
    const run = decode(packed);
    this.lastLive = run.provenance.mode === "live" ? run : this.lastLive;
    this.other = flip ? decode(flip) : null;
    this.adopt(run, ghost ? decode(ghost) : this.lastLive);
  }

  adopt(run, other) {
    // Benchmark points hold for one machine and one model.
    if (this.run && !comparable(run, this.run)) [this.options.times, this.options.otherTimes] = [this.options.otherTimes, this.options.times];
    this.run = run;
    this.ghost = arePair(run, other) ? other : null;
    this.run.id = `${this.run.scenario}|${this.run.provenance.created}|${++this.taken}`;
    const names = this.run.methods.map((method) => method.name), kept = this.state.methods.filter((name) => names.includes(name));
    const first = kindOf(run).first.filter((name) => names.includes(name)), methods = kept.length ? kept : first.length > 1 ? first : names.slice(0, 3);
    const method = methods.includes(this.state.method) ? this.state.method : methods[methods.length - 1];
    this.cache = new Map();
    this.state = Object.freeze({ ...this.state, tab: run.tab || "fuse", scenario: this.run.scenario || "", methods, method, ratio: this.run.ratio, token: null, zoom: null, layer: null });
    this.state = Object.freeze({ ...this.state, time: Math.min(this.state.time, this.limits().end_s) });
  }

  // First what the link says; a run that plays by itself only where nothing was asked for and motion is welcome.
  restore(asked) {
    const { scenario, ...view } = asked;
    this.apply({ type: "set", values: view });
    this.keepMethodShown();
    if (scenario && scenario !== this.run.scenario && this.offers(scenario)) { this.load(scenario, asked); return; }
    if (asked.scene && asked.time === undefined) { this.goScene(asked.scene); return; }
    if (asked.time !== undefined) return;
    const play = this.options.autoplay !== false && !this.quiet;
    this.state = Object.freeze({ ...this.state, time: play ? 0 : this.limits().end_s, playing: play });
  }

  // Live and recorded change places; what is looked at stays where both are over the same tokens.
  swap() {
    const { run, ghost, state } = this, { token, zoom, layer, time } = state;
    this.reason = "";
    this.adopt(ghost, run);
    this.apply({ type: "set", values: sameDocuments(run, ghost) ? { token, zoom, layer, time } : { time } });
    this.keepMethodShown();
  }

  apply(action) { this.state = reduce(this.state, action, this.limits()); }

  keepMethodShown() {
    const { methods, method } = this.state;
    if (!methods.includes(method)) this.state = Object.freeze({ ...this.state, method: methods[methods.length - 1] });
    this.state = Object.freeze({ ...this.state, time: Math.min(this.state.time, this.limits().end_s) });
  }

  shown() { return this.state.methods.map((name) => methodOf(this.run, name)); }

  remember(key, make) {
    if (!this.cache.has(key)) this.cache.set(key, make());
    return this.cache.get(key);
  }

  endOf(names) { return this.remember(`end ${names}`, () => kindOf(this.run).end(this.run, names.map((name) => methodOf(this.run, name)))); }

  limits() {
    const { run } = this;
    return {
      tab: run.tab || "fuse", names: run.methods.map((method) => method.name), numTokens: run.num_tokens, numLayers: run.num_layers, numScenes: this.options.tour.length,
      end_s: this.endOf(this.state.methods), longest_s: this.endOf(run.methods.map((method) => method.name)),
    };
  }

  offers(scenario) { return Boolean(this.options.loadRun) && this.options.runs.some((entry) => entry.id === scenario); }

  // The last load asked for wins, however long an earlier one takes.
  async load(scenario, values = {}) {
    const turn = ++this.loads;
    const packed = await this.options.loadRun(scenario).catch((error) => error);
    if (turn !== this.loads) return;
    if (packed instanceof Error) {
      this.reason = this.say()("load_failed", { scenario });
      this.schedule();
      return;
    }
    this.reason = "";
    this.take(packed);
    const { scene } = this.state;
    if (scene && values.time === undefined) this.arrange(scene);
    else this.restore({ ...values, scenario: undefined });
    this.schedule();
  }

  goScene(number) {
    this.apply({ type: "scene", scene: number });
    const scene = this.options.tour[this.state.scene - 1];
    if (!scene) return;
    if (scene.scenario !== this.run.scenario && this.offers(scene.scenario)) this.load(scene.scenario);
    else { this.loads++; this.arrange(this.state.scene); }
  }

  arrange(number) {
    const scene = this.options.tour[number - 1], wanted = sceneState(scene, this.run);
    if (wanted.playing && this.quiet) Object.assign(wanted, { playing: false, time: this.endOf(wanted.methods) });
    this.apply({ type: "set", values: wanted });
  }

  dispatch(action) {
    const special = this.specials()[action.type];
    if (special) special(action);
    else this.apply(action);
    if (["toggleMethod", "method"].includes(action.type)) this.keepMethodShown();
    this.schedule();
  }

  // Actions that need more than the state.
  specials() {
    const at = () => this.token() ?? (this.state.zoom ? (this.state.zoom[0] + this.state.zoom[1]) / 2 : this.run.tab ? this.state.time : this.run.num_tokens / 2);
    return {
      step: ({ by }) => this.apply({ type: "set", values: { playing: false, time: kindOf(this.run).step(this.run, this.shown(), this.state.time, by) } }),
      load: ({ scenario }) => { this.apply({ type: "scene", scene: 0 }); this.load(scenario); },
      scene: ({ scene }) => this.goScene(scene),
      moveScene: ({ by }) => this.goScene(Math.min(this.options.tour.length, Math.max(1, this.state.scene + by))),
      tour: () => this.goScene(1),
      measuredRatio: () => this.apply({ type: "ratio", ratio: this.run.ratio }),
      zoomIn: () => this.apply({ type: "zoom", factor: 0.5, at: at() }),
      zoomOut: () => this.apply({ type: "zoom", factor: 2, at: at() }),
      fullscreen: () => (document.fullscreenElement ? document.exitFullscreen() : this.ui.root.requestFullscreen && this.ui.root.requestFullscreen().catch(() => {})),
      notes: () => this.notes.open(),
      live: () => {
        if (this.ghost) this.swap();
        else if (this.options.onLive) this.options.onLive();
        else this.reason = this.say()(this.options.engine ? "live_press" : "live_none");
      },
      escape: () => { if (this.ui.isOpen()) this.ui.close(); else this.apply({ type: "escape" }); },
    };
  }

  seen() { return this.ui.root.isConnected && this.ui.root.getClientRects().length > 0; }

  // Keys are the player's while it can be seen and nothing else on the page has the focus but the tab it stands in; in a talk they always are.
  listens(target) {
    return this.seen() && (this.state.present || target === document.body || this.ui.root.contains(target) || target.getAttribute("role") === "tab");
  }

  onKey(event) {
    const action = this.listens(event.target) && actionOf(event, this.state);
    if (!action) return;
    event.preventDefault();
    this.dispatch(action);
  }

  hover(token) {
    if (token === this.hovered) return;
    this.hovered = token;
    this.schedule();
  }

  token() { return this.hovered ?? this.state.token; }

  say() {
    const { strings } = this.options, lang = pickLanguage(strings, [this.state.lang, document.documentElement.lang, ...(navigator.languages || [])].filter(Boolean));
    return Object.assign(this.remember(`say ${lang}`, () => phrasebook(strings, lang)), { lang });
  }

  model() {
    const { run, state, ghost } = this, kind = kindOf(run), method = methodOf(run, state.method), say = this.say(), { methods } = this.options.looks;
    const model = {
      run, state, method, say, ghost, locale: say.lang, why: [this.line && say(this.line), this.reason].filter(Boolean).join(" "), offline: this.line === "offline", shown: this.shown(),
      flip: this.remember(`flip ${method.name} ${state.ratio}`, () => flipOf(run, this.other, method.name, state.ratio)), label: (name) => (`name_${name}` in this.options.strings.en ? say(`name_${name}`) : methods[name] ? methods[name].label : name),
      title: kind.title(run, say.lang), source: kind.source(run, say, say.lang), ...kind.look(run, method, state, (key, make) => this.remember(key, make)),
    };
    model.verdict = this.remember(`verdict ${method.name} ${state.ratio} ${say.lang} ${model.request}`, () => verdictOf(model));
    return this.ui.complete(model);
  }

  schedule() {
    if (!this.waiting) this.waiting = requestAnimationFrame(this.frame);
  }

  frame(now) {
    this.waiting = 0;
    if (!this.ui.root.isConnected) { this.last = null; return; }
    if (this.state.playing) {
      const passed = this.last ? Math.min(0.1, (now - this.last) / 1000) : 0;
      this.apply({ type: "tick", time: this.state.time + passed * this.state.speed * kindOf(this.run).pace(this.run) });
      this.last = now;
    } else this.last = null;
    const model = this.model();
    this.ui.update(model, this.token());
    if (!this.drawn) this.drawn = performance.mark("fusescope:first-picture");
    this.tellNotes(model);
    if (this.state.playing) this.schedule();
    this.address.follow();
  }

  tellNotes({ say, locale }) {
    const { tour } = this.options, { scene, ratio } = this.state, key = `${scene} ${this.run.id} ${ratio} ${say.lang}`;
    if (!scene || key === this.told) return;
    this.told = key;
    const words = (entry) => entry && { title: titleOf(entry, say.lang), sentence: sentenceOf(entry, this.run, ratio, say.lang, locale) };
    this.notes.tell({ counter: `${scene} / ${tour.length}`, ...words(tour[scene - 1]), next: tour[scene] ? { title: titleOf(tour[scene], say.lang), sentence: "" } : null, nextLabel: say("notes_next") });
  }

  handle() {
    return {
      state: () => ({ ...shared(this.state) }),
      run: () => this.run,
      dispatch: this.dispatch,
      link: this.address.link,
      setRun: (packed, { reason = "", times = null, ...others } = {}) => { this.loads++; this.reason = reason; this.take(packed, others); Object.assign(this.options, { times, otherTimes: others.otherTimes }); this.restore({}); this.schedule(); },
      setReason: (reason) => { this.reason = reason; this.schedule(); },
      // "offline", "back" or "": what is said of the server behind the page.
      setLine: (line) => { this.line = line; this.schedule(); },
      destroy: () => { this.address.stop(); document.removeEventListener("keydown", this.onKey); this.notes.close(); this.ui.root.remove(); },
    };
  }
}
