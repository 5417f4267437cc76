// Scenes of the guided tour: each a state of the player and one sentence whose numbers come from the run shown. Knows no DOM.
import { methodOf } from "./decode.js";
import { kindOf } from "./kinds.js";
import { bestWord } from "./tokens.js";

// Where a scene stops on the clock: "start", "end", or a place that the kind of film knows.
export function sceneTime(run, methods, name, at) {
  if (at === "start") return 0;
  return at === "end" ? kindOf(run).end(run, methods) : kindOf(run).place(run, name, at);
}

// The state a scene asks for, as far as the run has it. Another run than the scene's own can stand in.
export function sceneState(scene, run) {
  const names = (scene.methods || []).filter((name) => methodOf(run, name));
  const methods = names.length ? names : run.methods.slice(0, 3).map((method) => method.name);
  const method = methods.includes(scene.method) ? scene.method : methods[methods.length - 1];
  return {
    methods, method, panel: scene.panel, ratio: scene.ratio ?? run.ratio, zoom: null, token: sceneToken(scene, run, method), playing: Boolean(scene.play),
    time: sceneTime(run, methods.map((name) => methodOf(run, name)), method, scene.at), layer: null,
  };
}

// A scene may point at the best-ranked word of its method.
const sceneToken = (scene, run, name) => (scene.token === "best" ? bestWord(run, methodOf(run, name)) : null);

// The sentence of a scene: the first of its versions whose conditions hold for the run. The last has none, so there always is one.
export function sentenceOf(scene, run, ratio, lang, locale = lang) {
  const kind = kindOf(run), conditions = kind.conditions(run), facts = kind.facts(run, ratio, locale);
  const version = scene.say.find((candidate) => (candidate.if || []).every((name) => conditions[name]));
  const text = version[lang] ?? version.en;
  return text.replace(/\{([^{}]+)\}/gu, (_, name) => facts[name] ?? "–");
}

export const titleOf = (scene, lang) => scene.title[lang] ?? scene.title.en;
