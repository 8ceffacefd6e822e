/**
 * The two random decisions of a device: a coin toss by integer threshold, and a uniform integer. Both are exact.
 */

/** @typedef {import("./words.js").Words} Words */

/** The threshold of a coin that always falls on its true side. */
export const CERTAIN = 2n ** 64n;

/** The largest bound of a uniform integer. */
export const WIDEST = 2n ** 62n;

/**
 * Toss a coin that is true with probability threshold / 2**64. Takes one word.
 * @param {Words} words
 * @param {bigint} threshold in 0 .. 2**64
 * @returns {boolean}
 */
export function chance(words, threshold) {
  return words() < threshold;
}

/**
 * Return a uniform integer in [0, bound): a word times the bound, divided by 2**64. Words whose remainder would make
 * some results more likely are drawn anew, which is seldom (after Lemire 2019).
 * @param {Words} words
 * @param {bigint} bound in 1 .. 2**62
 * @returns {bigint}
 */
export function below(words, bound) {
  const limit = CERTAIN - (CERTAIN % bound);
  for (;;) {
    const product = words() * bound;
    if (BigInt.asUintN(64, product) < limit) return product >> 64n;
  }
}
