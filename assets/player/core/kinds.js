// The two kinds of film that one player plays: a run of methods on a clock of seconds, and cache runs of policies on a clock of requests.
// Knows no DOM.
import { FILM_FORMAT, decodeFilm } from "./cache_decode.js";
import { filmConditions, filmFacts, requestAt, sourceParts, worstOf } from "./cache_facts.js";
import { clockEnd, instants, layerTimes, stepTime } from "./clock.js";
import { decodeRun, methodOf } from "./decode.js";
import { conditionsOf, factsOf } from "./facts.js";
import { phasesOf } from "./phases.js";
import { tokenFacts } from "./tokens.js";

// `first`: methods shown at first, the last one looked at; `end` of the clock for some methods; `step` to the next event; `pace`: units of the clock a second at full speed; `place` of a scene on
// the clock; `look`: what the views need of a method beside the run; `source`: where the numbers come from, in short.
const FUSE = {
  first: ["full", "cacheblend", "qcfuse"], facts: factsOf, conditions: conditionsOf, pace: () => 1,
  end: (run, methods) => clockEnd(methods),
  step: (run, methods, time, by) => stepTime(instants(methods), time, by),
  // The middle of a phase of the method looked at, as "probe" or "pipeline:0.4".
  place(run, name, at) {
    const [id, share] = at.split(":"), method = methodOf(run, name), phase = method && phasesOf(run, method).find((candidate) => candidate.id === id);
    return phase ? phase.start_s + (phase.end_s - phase.start_s) * Number(share ?? 0.5) : 0;
  },
  look: (run, method, state, remember) => ({
    phases: remember(`phases ${method.name}`, () => phasesOf(run, method)), times: remember(`times ${method.name}`, () => layerTimes(method, run.num_layers)),
    facts: (token) => tokenFacts(run, method, state.ratio, token),
  }),
  title: (run) => run.question,
  source: ({ provenance: { model, device, created } }) => `${model} · ${device} · ${created}`,
};

const EVICT = {
  first: ["min", "lru", "sae_g", "saecache"], facts: (film, _, locale) => filmFacts(film, locale), conditions: filmConditions,
  // The whole load in ten seconds at full speed.
  pace: (film) => film.num_tokens / 10,
  end: (film) => Math.max(0.001, film.num_tokens - 1),
  step: (film, _, time, by) => Math.min(film.num_tokens - 1, Math.max(0, by > 0 ? requestAt(film, time) + 1 : Math.ceil(time - 1e-6) - 1)),
  // The request with most regretted evictions, or a share of all requests.
  place: (film, name, at) => (at === "worst" ? worstOf(methodOf(film, name)) : Math.round(Number(at) * (film.num_tokens - 1))),
  look: (film, method, state) => ({ request: requestAt(film, state.time) }),
  title: (film, lang) => film.title[lang] ?? film.title.en,
  source: (film, say, locale) => say("film_source", sourceParts(film, locale)),
};

export const kindOf = (run) => (run.tab === "evict" ? EVICT : FUSE);
export const decode = (packed) => (packed && packed.format === FILM_FORMAT ? decodeFilm(packed) : decodeRun(packed));
