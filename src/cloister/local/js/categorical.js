/**
 * Mechanisms for one of d declared answers, or for some of them. The code of an answer is its place in the domain.
 *
 * Each builder reads the parameters of a record and returns a law. The order of the draws is part of the protocol's
 * version, and the worst ratio is computed from the same thresholds that the draws use.
 */

import { below, CERTAIN, chance } from "./draws.js";
import { AGAIN, insist } from "./errors.js";
import { apart, larger, ONE, power, ratio, readInteger, times } from "./exact.js";
import { bits, count, exactly, integers, threshold } from "./law.js";

/** @typedef {import("./words.js").Words} Words */
/** @typedef {import("./exact.js").Ratio} Ratio */
/** @template Code @typedef {import("./law.js").Law<Code>} Law */

const MOST_PICKS = 1000;

/**
 * Direct encoding: the truth, or another value, all others alike. Draws: truth or lie; which lie.
 * @param {any} params
 * @param {number} size
 * @returns {Law<number>}
 */
export function directEncoding(params, size) {
  const truth = threshold(exactly(params, ["truth"]), "truth");
  return {
    fields: [integers("y", BigInt(size))],
    worst: worstOfTruth(truth, BigInt(size)),
    draw: (code, words) => [Number(truthOrLie(words, truth, BigInt(code), BigInt(size)))],
  };
}

/**
 * Randomized response to a question with two answers: direct encoding, or one coin for each answer ("yes" is the
 * second one). Draws of the latter: one toss.
 * @param {any} params
 * @param {number} size
 * @returns {Law<number>}
 */
export function randomizedResponse(params, size) {
  insist(size === 2, "Randomized response needs two answers.", "use direct encoding.");
  if (params !== null && typeof params === "object" && "truth" in params) return directEncoding(params, size);
  exactly(params, ["yes_if_no", "yes_if_yes"]);
  const coins = [threshold(params, "yes_if_no"), threshold(params, "yes_if_yes")];
  return {
    fields: [integers("y", 2n)],
    worst: larger(apart(coins[0], coins[1]), apart(CERTAIN - coins[0], CERTAIN - coins[1])),
    draw: (code, words) => [chance(words, coins[code]) ? 1 : 0],
  };
}

/**
 * Unary encoding of one answer, symmetric or optimized. Draws: one toss for each answer of the domain, in its order.
 * @param {any} params
 * @param {number} size
 * @returns {Law<number>}
 */
export function unaryEncoding(params, size) {
  exactly(params, ["flip", "keep"]);
  const law = unaryBits(params, size, 1);
  return { ...law, draw: (code, words) => law.draw(new Set([code]), words) };
}

/**
 * Unary encoding of at most "most" answers. Draws: one toss for each answer of the domain, in its order.
 * @param {any} params
 * @param {number} size
 * @returns {Law<ReadonlySet<number>>}
 */
export function unarySet(params, size) {
  exactly(params, ["flip", "keep", "most"]);
  const most = Number(readInteger(params.most, 'The parameter "most"', 1n, BigInt(Math.min(size, MOST_PICKS))));
  const law = unaryBits(params, size, most);
  return {
    ...law,
    draw: (codes, words) => {
      insist(codes.size <= most, "There are too many answers.", `choose at most ${most}.`);
      return law.draw(codes, words);
    },
  };
}

/**
 * Local hashing: direct encoding of the answer's bucket under a random hash. Draws: both parts of the hash, then those
 * of direct encoding.
 * @param {any} params
 * @returns {Law<number>}
 */
export function localHashing(params) {
  exactly(params, ["buckets", "prime", "truth"]);
  const [prime, buckets] = [count(params, "prime"), count(params, "buckets", 2n)];
  const truth = threshold(params, "truth");
  return {
    fields: [integers("a", prime), integers("b", prime), integers("y", buckets)],
    worst: worstOfTruth(truth, buckets),
    draw: (code, words) => {
      const a = below(words, prime);
      const b = below(words, prime);
      const bucket = ((a * BigInt(code) + b) % prime) % buckets;
      return [a, b, truthOrLie(words, truth, bucket, buckets)].map(Number);
    },
  };
}

/**
 * Hadamard response: a column where the answer's row of the Hadamard matrix is 1, or one where it is -1. Draws: which
 * of the two; which column.
 * @param {any} params
 * @param {number} size
 * @returns {Law<number>}
 */
export function hadamardResponse(params, size) {
  exactly(params, ["order", "truth"]);
  const order = count(params, "order", BigInt(size) + 1n);
  insist((order & (order - 1n)) === 0n, "The order of the Hadamard matrix is not a power of two.", AGAIN);
  const truth = threshold(params, "truth");
  return {
    fields: [integers("y", order)],
    worst: apart(truth, CERTAIN - truth),
    draw: (code, words) => {
      const agrees = chance(words, truth);
      const column = below(words, order);
      const row = BigInt(code) + 1n;
      return [Number(isEven(column & row) === agrees ? column : column ^ (row & -row))];
    },
  };
}

/**
 * Any transition matrix (PRAM): cumulative thresholds, a row for each answer. Draws: one word.
 * @param {any} params
 * @param {number} size
 * @returns {Law<number>}
 */
export function transitionMatrix(params, size) {
  const { rows } = exactly(params, ["rows"]);
  insist(isTable(rows, size), "The matrix does not fit the domain.", AGAIN);
  const limits = rows.map(cumulative);
  return {
    fields: [integers("y", BigInt(size))],
    worst: worstOfColumns(limits.map(weights)),
    draw: (code, words) => {
      const word = words();
      return [limits[code].filter((/** @type {bigint} */ limit) => limit <= word).length];
    },
  };
}

/**
 * The bits of a set of answers. Two answers differ in at most "most" bits that only the first one has, and as many that
 * only the second one has.
 * @param {any} params
 * @param {number} size
 * @param {number} most
 * @returns {Law<ReadonlySet<number>>}
 */
function unaryBits(params, size, most) {
  const [keep, flip] = [threshold(params, "keep"), threshold(params, "flip")];
  const gained = larger(among(keep, flip), among(CERTAIN - keep, CERTAIN - flip));
  const lost = larger(among(flip, keep), among(CERTAIN - flip, CERTAIN - keep));
  const [more, less] = larger(gained, lost) === gained ? [gained, lost] : [lost, gained];
  return {
    fields: [bits(size)],
    worst: times(power(more, most), power(less, Math.min(most, size - most))),
    draw: (codes, words) => {
      let text = "";
      for (let place = 0; place < size; place += 1) text += chance(words, codes.has(place) ? keep : flip) ? "1" : "0";
      return [text];
    },
  };
}

/** @param {bigint} truth @param {bigint} size @returns {Ratio} */
function worstOfTruth(truth, size) {
  return apart(truth * (size - 1n), CERTAIN - truth);
}

/** @param {Words} words @param {bigint} truth @param {bigint} code @param {bigint} size @returns {bigint} */
function truthOrLie(words, truth, code, size) {
  if (chance(words, truth)) return code;
  return (code + 1n + below(words, size - 1n)) % size;
}

/** @param {bigint} a @param {bigint} b @returns {Ratio} a / b, where two impossible outcomes do not differ */
function among(a, b) {
  return a === b ? ONE : ratio(a, b);
}

/** @param {bigint} value @returns {boolean} whether the number of its ones is even */
function isEven(value) {
  let even = true;
  for (let rest = value; rest > 0n; rest &= rest - 1n) even = !even;
  return even;
}

/** @param {any} rows @param {number} size @returns {boolean} */
function isTable(rows, size) {
  const isRow = (/** @type {any} */ row) => Array.isArray(row) && row.length === size - 1;
  return Array.isArray(rows) && rows.length === size && rows.every(isRow);
}

/** @param {any[]} row @returns {bigint[]} */
function cumulative(row) {
  let last = 0n;
  return row.map((value) => (last = readInteger(value, "A threshold of the matrix", last, CERTAIN)));
}

/** @param {bigint[]} limits @returns {bigint[]} */
function weights(limits) {
  return [...limits, CERTAIN].map((limit, place) => limit - (place ? limits[place - 1] : 0n));
}

/** @param {bigint[][]} matrix @returns {Ratio} */
function worstOfColumns(matrix) {
  const columns = matrix[0].map((_, place) => matrix.map((row) => row[place]));
  return columns.map((column) => apart(largest(column), smallest(column))).reduce(larger);
}

/** @param {bigint[]} values @returns {bigint} */
function largest(values) {
  return values.reduce((a, b) => (a > b ? a : b));
}

/** @param {bigint[]} values @returns {bigint} */
function smallest(values) {
  return values.reduce((a, b) => (a < b ? a : b));
}
