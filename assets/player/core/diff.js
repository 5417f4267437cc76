// Where two answers part. Knows no DOM.

const words = (text) => text.match(/\S+\s*|^\s+/gu) || [];

// An answer cut in two: as long as its words are those of the reference, and from the first that is not.
export function splitAtDifference(answer, reference) {
  const own = words(answer), other = words(reference);
  let same = 0;
  while (same < own.length && same < other.length && own[same].trim() === other[same].trim()) same++;
  return { same: own.slice(0, same).join(""), differs: own.slice(same).join(""), equal: same === own.length && same === other.length, index: same };
}
