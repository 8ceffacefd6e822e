/**
 * What a mechanism is, to the protocol that uses it: its output fields, its worst likelihood ratio and its draws.
 */

import { AGAIN, insist } from "./errors.js";
import { readInteger } from "./exact.js";
import { CERTAIN, WIDEST } from "./draws.js";

/**
 * @typedef {Readonly<{name: string, kind: "integer", low: bigint, high: bigint}>} IntegerField
 * @typedef {Readonly<{name: string, kind: "bits", length: number}>} BitsField
 * @typedef {IntegerField | BitsField} Field
 * @typedef {number | string} Value of a field: an integer, or a text of 0 and 1
 */

/**
 * @template Code
 * @typedef {object} Law
 * @property {readonly Field[]} fields
 * @property {import("./exact.js").Ratio} worst the largest ratio of an output's probabilities under two inputs
 * @property {(code: Code, words: import("./words.js").Words) => readonly Value[]} draw a value for each field
 */

/** The largest integer that a JSON number carries exactly. */
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * Return an integer field with values 0 .. size - 1.
 * @param {string} name
 * @param {bigint} size
 * @returns {IntegerField}
 */
export function integers(name, size) {
  insist(size <= LARGEST, "An output of the protocol is too wide for a browser.", "use a coarser protocol.");
  return Object.freeze({ name, kind: /** @type {const} */ ("integer"), low: 0n, high: size - 1n });
}

/** @param {number} length @returns {BitsField} */
export function bits(length) {
  return Object.freeze({ name: "bits", kind: /** @type {const} */ ("bits"), length });
}

/**
 * Return the parameters of a record, which must be exactly the named ones.
 * @param {any} params
 * @param {readonly string[]} names
 * @returns {any}
 */
export function exactly(params, names) {
  const given = params !== null && typeof params === "object" ? Object.keys(params).sort() : [];
  insist(given.join() === [...names].sort().join(), "The parameters are not those of the protocol.", AGAIN);
  return params;
}

/** @param {any} params @param {string} name @returns {bigint} in 0 .. 2**64 */
export function threshold(params, name) {
  return readInteger(params[name], `The threshold "${name}"`, 0n, CERTAIN);
}

/** @param {any} params @param {string} name @param {bigint} [low] @returns {bigint} in low .. 2**62 */
export function count(params, name, low = 1n) {
  return readInteger(params[name], `The parameter "${name}"`, low, WIDEST);
}
