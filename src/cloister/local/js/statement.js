/**
 * The odds that a respondent is told. A report is bounded evidence about its sender, and this is the bound; the words "your
 * answer is anonymous" would be wrong.
 */

import { insist } from "./errors.js";
import { approximate, readNumber } from "./exact.js";

/**
 * Return the factor by which the odds about an answer can change, at most: e ** epsilon.
 * @param {number | string} epsilon a number, or the exact text of a protocol
 * @returns {number}
 */
export function oddsFactor(epsilon) {
  const loss = typeof epsilon === "string" ? approximate(readNumber(epsilon, "Epsilon")) : epsilon;
  insist(Number.isFinite(loss) && loss > 0, "Epsilon is out of range.", "give an epsilon above 0.");
  return Math.exp(loss);
}

/**
 * Return the sentence that tells a respondent what the collector can learn from a report.
 * @param {number | string} epsilon a number, or the exact text of a protocol
 * @returns {string}
 */
export function statement(epsilon) {
  return sentence("your true answer", oddsFactor(epsilon));
}

/**
 * Return the sentence about several reports of one respondent: their losses add up.
 * @param {readonly (number | string)[]} epsilons numbers, or the exact texts of protocols
 * @returns {string}
 */
export function totalStatement(epsilons) {
  return totalOf(epsilons.map(lossOf).reduce((a, b) => a + b, 0)).statement;
}

/** @param {number | string} epsilon 0 for a question that is not answered @returns {number} */
function lossOf(epsilon) {
  const loss = typeof epsilon === "string" ? approximate(readNumber(epsilon, "Epsilon")) : epsilon;
  insist(Number.isFinite(loss) && loss >= 0, "Epsilon is out of range.", "give an epsilon of at least 0.");
  return loss;
}

/** What to show beside a choice of levels. */
export const LEVELS_ARE_VISIBLE =
  "The collector sees which level you chose, and whether you answered. Choose before you think of your answer: if the " +
  "choice depends on the answer, the choice itself tells about it.";

/** Return the sentence about a question that is not answered. @returns {string} */
export function unanswered() {
  return "You do not answer this question. The collector sees that you did not, and nothing about your answer is sent.";
}

/**
 * Return what all answers of one respondent together can tell.
 * @param {number} epsilon the sum of their losses; 0 if nothing is answered
 * @returns {Readonly<{epsilon: number, oddsFactor: number, statement: string}>}
 */
export function totalOf(epsilon) {
  const factor = epsilon > 0 ? oddsFactor(epsilon) : 1;
  const text = epsilon > 0 ? sentence("all your true answers together", factor) : NOTHING;
  return Object.freeze({ epsilon, oddsFactor: factor, statement: text });
}

const NOTHING = "You answer no question. The collector sees that you took part, and nothing about your answers is sent.";

/** @param {string} what @param {number} factor @returns {string} */
function sentence(what, factor) {
  const most = threeDigits(factor);
  return `Whatever you answer, the collector's odds about ${what} can change by at most a factor ${most}.`;
}

/**
 * Return a bound with three digits, rounded up: what is printed must be true. What exceeds three digits by less than one
 * part in 10 ** 12 is left off, since stated losses are rounded up themselves.
 * @param {number} value at least 1
 * @returns {string}
 */
function threeDigits(value) {
  if (value >= 1e15) return "above a million billions";
  const meant = value * (1 - 1e-12);
  const near = meant.toPrecision(3);
  const step = 10 ** (Number(near.split("e")[1] ?? Math.floor(Math.log10(Number(near)))) - 2);
  const rounded = Number(near) >= meant ? Number(near) : Number(near) + step;
  return rounded >= 100 ? Number(rounded.toPrecision(3)).toLocaleString("en-US") : rounded.toPrecision(3);
}
