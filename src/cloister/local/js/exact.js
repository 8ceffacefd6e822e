/**
 * Exact numbers: rationals of BigInts, a proven comparison with an exponential, and the reading of numbers from text.
 */

import { AGAIN, insist } from "./errors.js";

/** @typedef {{readonly top: bigint, readonly bottom: bigint}} Ratio bottom is positive, or 0n for infinity */

const MOST_CHARACTERS = 1000;
const LARGEST_EXPONENT = 1000;
const LARGEST_EPSILON = 20n;
const PRECISION = 512n;
const WHOLE = /^(?:0|-?[1-9]\d*)$/;
const FRACTION = /^([+-]?\d+)\/(\d+)$/;
const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?$/;

/** The rational number one. */
export const ONE = ratio(1n, 1n);

/**
 * @param {bigint} top
 * @param {bigint} bottom
 * @returns {Ratio}
 */
export function ratio(top, bottom) {
  return Object.freeze({ top, bottom });
}

/** @param {Ratio} a @param {Ratio} b @returns {Ratio} */
export function times(a, b) {
  return ratio(a.top * b.top, a.bottom * b.bottom);
}

/** @param {Ratio} a @param {Ratio} b @returns {Ratio} */
export function plus(a, b) {
  return ratio(a.top * b.bottom + b.top * a.bottom, a.bottom * b.bottom);
}

/** @param {Ratio} a @param {Ratio} b @returns {boolean} whether a is at most b */
export function isAtMost(a, b) {
  return a.top * b.bottom <= b.top * a.bottom;
}

/** @param {Ratio} base @param {number} exponent a whole number @returns {Ratio} */
export function power(base, exponent) {
  return ratio(base.top ** BigInt(exponent), base.bottom ** BigInt(exponent));
}

/** @param {Ratio} a @param {Ratio} b @returns {Ratio} */
export function larger(a, b) {
  return a.top * b.bottom >= b.top * a.bottom ? a : b;
}

/**
 * Return by what factor two weights of one outcome differ, at least 1; two impossible outcomes do not differ.
 * @param {bigint} a
 * @param {bigint} b
 * @returns {Ratio}
 */
export function apart(a, b) {
  if (a === b) return ONE;
  return a > b ? ratio(a, b) : ratio(b, a);
}

/**
 * Return the integer nearest to value * steps, halves upwards.
 * @param {Ratio} value not negative
 * @param {bigint} steps
 * @returns {bigint}
 */
export function nearest(value, steps) {
  return (2n * value.top * steps + value.bottom) / (2n * value.bottom);
}

/**
 * Return whether a ratio is certainly at most e ** epsilon.
 * @param {Ratio} value
 * @param {Ratio} epsilon positive
 * @returns {boolean}
 */
export function atMostExponential(value, epsilon) {
  return value.top << PRECISION <= exponentialBelow(epsilon) * value.bottom;
}

/**
 * Return an integer that is not above e ** exponent * 2 ** PRECISION, and hardly below: every step rounds down.
 * @param {Ratio} exponent not negative
 * @returns {bigint}
 */
function exponentialBelow(exponent) {
  const halvings = BigInt((exponent.top / exponent.bottom).toString(2).length);
  const small = (exponent.top << PRECISION) / (exponent.bottom << halvings);
  let term = 1n << PRECISION;
  let sum = 0n;
  for (let n = 1n; term > 0n; n += 1n) {
    sum += term;
    term = ((term * small) >> PRECISION) / n;
  }
  for (let n = 0n; n < halvings; n += 1n) sum = (sum * sum) >> PRECISION;
  return sum;
}

/**
 * Return the natural logarithm of a ratio of at least 1, good to about 1e-15: to show, never to decide.
 * @param {Ratio} value
 * @returns {number}
 */
export function logarithm(value) {
  if (value.bottom === 0n) return Infinity;
  const doublings = BigInt(Math.max(0, length(value.top) - length(value.bottom) - 1));
  const unit = value.bottom << doublings;
  const rest = Number(((value.top - unit) << 100n) / unit) / 2 ** 100;
  return Number(doublings) * Math.LN2 + Math.log1p(rest);
}

/**
 * Return the nearest number, good to about 1e-15: to show, never to decide.
 * @param {Ratio} value
 * @returns {number}
 */
export function approximate(value) {
  return Number((value.top << 100n) / value.bottom) / 2 ** 100;
}

/**
 * Return the exact value of a decimal ("0.5", "-3e-2"), of a fraction ("1/4"), or of a finite JavaScript number.
 * @param {unknown} value
 * @param {string} name what the number is, for the error
 * @returns {Ratio}
 */
export function readNumber(value, name) {
  const found = typeof value === "number" ? fromBinary(value) : fromText(value);
  insist(found !== null, `${name} is not a finite number.`, 'write it in digits with a point, such as "12.5".');
  return /** @type {Ratio} */ (found);
}

/**
 * Return the privacy loss that a protocol states.
 * @param {unknown} value
 * @returns {Ratio}
 */
export function readEpsilon(value) {
  insist(typeof value === "string", "Epsilon is not a text.", 'state epsilon as a text, such as "1/2".');
  const found = readNumber(value, "Epsilon");
  insist(
    found.top > 0n && found.top <= LARGEST_EPSILON * found.bottom,
    "Epsilon is out of range.",
    `state an epsilon above 0 and at most ${LARGEST_EPSILON}.`,
  );
  return found;
}

/**
 * Return an integer that is given as a decimal text, or as a JSON number that is exact.
 * @param {unknown} value
 * @param {string} name
 * @param {bigint} low
 * @param {bigint} high
 * @returns {bigint}
 */
export function readInteger(value, name, low, high) {
  const written = typeof value === "string" && value.length <= MOST_CHARACTERS && WHOLE.test(value);
  insist(written || Number.isSafeInteger(value), `${name} is not an integer.`, AGAIN);
  const found = BigInt(/** @type {string | number} */ (value));
  insist(found >= low && found <= high, `${name} is out of range.`, AGAIN);
  return found;
}

/** @param {unknown} value @returns {Ratio | null} */
function fromText(value) {
  if (typeof value !== "string" || value.length > MOST_CHARACTERS) return null;
  const text = value.trim();
  const fraction = FRACTION.exec(text);
  if (fraction) {
    const bottom = BigInt(fraction[2]);
    return bottom === 0n ? null : ratio(BigInt(fraction[1].replace("+", "")), bottom);
  }
  return fromDecimal(DECIMAL.exec(text));
}

/** @param {RegExpExecArray | null} parts @returns {Ratio | null} */
function fromDecimal(parts) {
  if (!parts) return null;
  const [, sign, whole, decimals = "", written = "0"] = parts;
  const exponent = Number(written);
  if (whole + decimals === "" || Math.abs(exponent) > LARGEST_EXPONENT) return null;
  const digits = BigInt(whole + decimals) * (sign === "-" ? -1n : 1n);
  const shift = BigInt(exponent - decimals.length);
  return shift >= 0n ? ratio(digits * 10n ** shift, 1n) : ratio(digits, 10n ** -shift);
}

/** @param {number} value @returns {Ratio | null} */
function fromBinary(value) {
  if (!Number.isFinite(value)) return null;
  let scaled = value;
  let doublings = 0n;
  for (; !Number.isInteger(scaled); doublings += 1n) scaled *= 2;
  return ratio(BigInt(scaled), 1n << doublings);
}

/** @param {bigint} value @returns {number} */
function length(value) {
  return value.toString(2).length;
}
