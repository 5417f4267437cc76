// Wording of the Evict view: pace, request, victims.
import { KINDS, QUEUES } from "../core/cache_facts.js";
import { count, decimals, scientific, seconds, times } from "../core/words.js";

export const short = (v, locale) => (v && (Math.abs(v) < 0.001 || Math.abs(v) >= 1e5) ? scientific(v) : v.toLocaleString(locale, { maximumSignificantDigits: 3 }));

export const foundOf = ({ run, request, locale }, { requests }) => ({ found: count(requests.hit_blocks[request], locale), total: count(run.requests.prompt_blocks[request], locale) });

// How fast requests go by, and how that compares with the load's own clock.
export function paceOf({ run, say, locale }, speed) {
  const { time_s } = run.requests, num = run.num_tokens, own = num / Math.max(1e-9, time_s[num - 1] - time_s[0]), now = (speed * num) / 10;
  return say("film_pace", { count: decimals(now, now < 10 ? 1 : 0, locale), times: times(now / own, locale) });
}

export const whatOf = ({ say, locale }, group) => say("v_blocks", { count: count(group.num, locale), range: group.num > 1 ? `${count(group.from, locale)}–${count(group.to, locale)}` : count(group.from, locale), kind: say(`b_${KINDS[group.kind]}`), queue: say(`b_${QUEUES[group.queue]}`) });
export const outcomeOf = ({ say, locale }, group) => (group.suffered < 0 ? say("v_never") : say(group.regret ? "v_regret" : "v_back", { request: count(group.suffered, locale), time: seconds(group.early_s, locale) }));
// The evidence that is recorded: idle time, hits, and what the policy had learned of such blocks.
export const whyOf = ({ say, locale }, group, learned) => [say("v_idle", { time: seconds(group.idle_s, locale) }), say("v_hits", { count: count(group.hits, locale) }), ...learned.map(([group, name, value]) => `${group} ${bandWords(say, name)} = ${short(value, locale)}`)].join(" · ");

// A weight's group and its own name, as far as they are known ones.
export const groupWords = (say, name) => (["alpha", "w", "mu", "sigma", "gamma"].includes(name) ? say(`g_${name}`) : name);
export const bandWords = (say, name) => ([...QUEUES, ...KINDS, "cot"].includes(name) ? say(`b_${name === "cot" ? "thinking" : name}`) : name);
