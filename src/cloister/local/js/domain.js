/**
 * The public domain of a question: declared answers in their order, or the bounds of a number.
 */

import { AGAIN, insist } from "./errors.js";
import { readNumber } from "./exact.js";

/** @typedef {string | number | boolean} Answer */

const MOST_ANSWERS = 2 ** 24;

/**
 * Return the place of every answer by its canonical text.
 * @param {any} values
 * @returns {Map<string, number>}
 */
export function readDomain(values) {
  insist(
    Array.isArray(values) && values.length >= 2 && values.length <= MOST_ANSWERS && values.every(isAnswer),
    "The domain is not a list of at least two answers.",
    AGAIN,
  );
  const places = new Map();
  values.forEach((/** @type {Answer} */ value, /** @type {number} */ place) => places.set(tagged(value), place));
  insist(places.size === values.length, "The domain has an answer twice.", AGAIN);
  return places;
}

/**
 * Return the exact bounds of a number.
 * @param {any} bounds
 * @returns {readonly [import("./exact.js").Ratio, import("./exact.js").Ratio]}
 */
export function readBounds(bounds) {
  const isPair = Array.isArray(bounds) && bounds.length === 2 && bounds.every((bound) => typeof bound === "string");
  insist(isPair, "The bounds are not a pair of texts.", AGAIN);
  const [low, high] = bounds.map((/** @type {string} */ bound) => readNumber(bound, "A bound"));
  insist(low.top * high.bottom < high.top * low.bottom, "The bounds are in the wrong order.", AGAIN);
  return [low, high];
}

/**
 * Return whether something can be an answer.
 * @param {unknown} value
 * @returns {boolean}
 */
export function isAnswer(value) {
  if (typeof value !== "number") return typeof value === "string" || typeof value === "boolean";
  return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
}

/**
 * Return the canonical text of an answer, which also tells its type.
 * @param {Answer} value
 * @returns {string}
 */
export function tagged(value) {
  if (typeof value === "string") return `s:${value}`;
  if (typeof value === "boolean") return `b:${value}`;
  return Number.isInteger(value) ? `i:${BigInt(value)}` : `n:${decimalText(value)}`;
}

/**
 * Return the shortest decimal that reads as a number, spelled as Python spells it.
 * @param {number} value
 * @returns {string}
 */
export function decimalText(value) {
  const [digits, exponent] = value.toExponential().split("e");
  const size = Number(exponent);
  if (size < -4 || size >= 16) return `${digits}e${size < 0 ? "-" : "+"}${String(Math.abs(size)).padStart(2, "0")}`;
  return value.toFixed(Math.max(1, digits.replace(/[-.]/g, "").length - 1 - size));
}
