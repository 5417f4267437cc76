// The Evict view as tables, for people who read instead of look, and how its numbers came about.
import { bandsOf, halfRate, leaving, learnedOf, momentAt, partsOf, rate, rateOf, sourceParts } from "../core/cache_facts.js";
import { NONE, count, decimals, percent, seconds } from "../core/words.js";
import { foundOf, outcomeOf, short, whatOf, whyOf } from "./evict_words.js";
import { table } from "./tables.js";

export function filmTables(model) {
  const { run, method, request, say, locale, label } = model, n = (value) => count(value, locale), at = n(request), moment = momentAt(method, request);
  const policies = run.methods.map((one) => [label(one.name), rate(rateOf(run, one, request), locale), rate(halfRate(run, one), locale), n(one.starts[request + 1]), run.limit_sums ? n(one.regret_sums[request + 1]) : NONE, decimals((1e6 * one.elapsed_s) / one.evictions.block.length, 0, locale)]);
  const asked = run.methods.map((one) => [label(one.name), ...Object.values(foundOf(model, one)), ...partsOf(one, request).map(([, tokens]) => n(tokens)), n(one.requests.num_inserted[request]), n(one.starts[request + 1] - one.starts[request]), seconds(one.requests.ttft_s[request], locale)]);
  const held = moment < 0 ? [] : [...bandsOf(run, method, moment).map(([name, num]) => [say(`b_${name}`), n(num), percent(num / run.capacity_blocks, locale)]), ...method.weight_names.map((name, w) => [name, short(method.snapshots.weights[moment * method.weight_names.length + w], locale), NONE])];
  const left = leaving(method, request).map((group) => [whatOf(model, group), whyOf(model, group, learnedOf(method, request, group)), outcomeOf(model, group)]);
  return [
    table(say("table_policies", { request: at }), ["col_policy", "col_rate", "col_half", "f_left", "col_regretted", "col_cost"].map((key) => say(key)), policies),
    table(say("request_of", { request: at, last: n(run.num_tokens - 1) }), [...["col_policy", "col_found", "col_asked"], ...["hit", "evicted", "changed_prefix", "cold", "shorter"].map((name) => `b_${name}`), "f_inserted", "f_left", "col_ttft"].map((key) => say(key)), asked),
    left.length > 0 && table(say("victims_title"), ["col_blocks", "col_why", "col_outcome"].map((key) => say(key)), left),
    held.length > 0 && table(say("moment_note", { request: n(method.snapshots.request[moment]) }), ["bands_title", "col_blocks", "col_share"].map((key) => say(key)), held),
  ];
}

// Lines of the card "How was this measured?": [name of the text, value].
export function filmMeasured(film, say, locale) {
  const [one] = film.methods;
  return [
    ["m_load", `${film.title[say.lang] ?? film.title.en} (${film.workload})`], ["m_cache", say("film_source", sourceParts(film, locale))], ["m_policies", film.methods.map(({ name, params }) => `${name} ${Object.entries(params).map(([key, value]) => `${key}=${value}`).join(", ")}`.trim()).join("; ")],
    ["m_predictor", one.predictor], ["col_ttft", one.cost], ["m_when", `${film.provenance.created}, ${film.provenance.commit}`], ["m_rate", say("m_rate_words")], ["col_regretted", say("m_regret_words")],
  ];
}
