/**
 * Hashes of a record: of its domain, and the fingerprint of all of it. Both are SHA-256 of a canonical text, which is
 * JSON without spaces, with sorted keys and with numbers as Python spells them.
 */

import { decimalText, tagged } from "./domain.js";
import { AGAIN, insist } from "./errors.js";

/** @typedef {import("./domain.js").Answer} Answer */

/** A number that is spelled as a decimal even if it is whole. */
class Decimal {
  /** @param {number} value */
  constructor(value) {
    this.value = value;
  }
}

/**
 * Refuse a record that does not have its stated hashes. JSON does not tell 1.0 from 1, so the whole numbers of a domain
 * may be meant as integers or as decimals: either reading is accepted, if both hashes agree on it.
 * @param {any} record
 */
export async function checkHashes(record) {
  const readings = record.domain ? [record.domain, record.domain.map(asDecimal)] : [null];
  const fits = await Promise.all(readings.map((domain) => hasHashes(record, domain)));
  insist(fits.includes(true), "The protocol does not have its stated hashes.", AGAIN);
}

/** @param {any} record @param {any[] | null} domain @returns {Promise<boolean>} */
async function hasHashes(record, domain) {
  const { fingerprint, ...rest } = domain ? { ...record, domain } : record;
  const texts = domain ? domain.map(taggedReading) : record.bounds.map((/** @type {string} */ bound) => `n:${bound}`);
  const [ofDomain, ofAll] = await Promise.all([JSON.stringify(texts), canonical(rest)].map(sha256));
  return ofDomain === record.domain_hash && ofAll === fingerprint;
}

/** @param {Answer} value @returns {Answer | Decimal} */
function asDecimal(value) {
  return typeof value === "number" ? new Decimal(value) : value;
}

/** @param {Answer | Decimal} value @returns {string} */
function taggedReading(value) {
  return value instanceof Decimal ? `n:${decimalText(value.value)}` : tagged(value);
}

/** @param {any} value @returns {string} */
function canonical(value) {
  if (value instanceof Decimal) return decimalText(value.value);
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value).toString() : decimalText(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const pairs = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${pairs.join()}}`;
}

/** @param {string} text @returns {Promise<string>} in hexadecimal */
export async function sha256(text) {
  const subtle = globalThis.crypto?.subtle;
  insist(
    typeof subtle?.digest === "function",
    "This page cannot check the question, because it was not loaded over a secure connection.",
    "open it with an address that starts with https://.",
  );
  const digest = await subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
