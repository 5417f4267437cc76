// Wording of numbers and placeholders; the numbers read as those of the page (viz/figures/words.py). Knows no DOM.

export const NONE = "–";

// Making a format costs more than using it, and every frame writes numbers.
const formats = new Map();

function grouped(value, digits, locale) {
  const key = `${locale} ${digits}`;
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  return formats.get(key).format(value);
}

// "2.31 s", "84 ms", "0.4 ms".
export function seconds(value, locale = "en") {
  if (!Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 100) return `${grouped(value, 0, locale)} s`;
  if (size >= 0.1) return `${grouped(value, 2, locale)} s`;
  return `${grouped(value * 1e3, size >= 0.001 || !size ? 0 : 1, locale)} ms`;
}

// "102 MB", in decimal units.
export function bytes(value, locale = "en") {
  const units = ["B", "kB", "MB", "GB"];
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < units.length - 1) { value /= 1000; unit++; }
  return `${grouped(value, value >= 10 || !unit ? 0 : 1, locale)} ${units[unit]}`;
}

export function percent(share, locale = "en") {
  const value = share * 100;
  return `${grouped(value, value > 0 && value < 1 ? 1 : 0, locale)} %`;
}

export const times = (factor, locale = "en") => `${grouped(factor, factor >= 10 ? 0 : 1, locale)}×`;
// How much slower than measured: 0.25 of the speed is "4×".
export const slowdown = (speed, locale = "en") => `${grouped(1 / speed, Number.isInteger(1 / speed) ? 0 : 1, locale)}×`;
export const count = (value, locale = "en") => grouped(value, 0, locale);
export const decimals = (value, digits, locale = "en") => (Number.isFinite(value) ? grouped(value, digits, locale) : NONE);

// "3.1e-4" as 3.1 × 10⁻⁴ is read worse at a distance than the plain exponent.
export const scientific = (value) => (Number.isFinite(value) ? value.toExponential(2) : NONE);

// A token as shown: line ends and blanks stay visible.
export function tokenLabel(text, limit = 24) {
  const plain = text.replace(/\n/gu, "⏎").replace(/\t/gu, "⇥").trim() || (text.includes("\n") ? "⏎" : "␣");
  return shorten(plain, limit);
}

export function shorten(text, limit) {
  const letters = [...text.slice(0, 2 * limit + 2)];
  return letters.length > limit || text.length > 2 * limit + 2 ? `${letters.slice(0, limit - 1).join("").trimEnd()}…` : text;
}

// Puts values into "{name}" places. An unknown name is our mistake and is said so.
export function fill(pattern, values) {
  return pattern.replace(/\{([^{}]+)\}/gu, (_, name) => {
    if (!(name in values)) throw new Error(`no value for {${name}} in "${pattern}"`);
    return values[name];
  });
}

// Texts of one language; English stands in for a missing one.
export function phrasebook(strings, lang) {
  const own = strings[lang] || {};
  return (key, values = {}) => {
    const pattern = own[key] ?? strings.en[key];
    if (pattern === undefined) throw new Error(`no text for ${key}`);
    return fill(pattern, values);
  };
}

export const pickLanguage = (strings, wanted) => wanted.map((tag) => String(tag).slice(0, 2).toLowerCase()).find((tag) => tag in strings) || "en";
