/**
 * What a respondent is told. A report is bounded evidence about its sender, and this is the bound; the words "your
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

/** @param {number} value @returns {string} */
function threeDigits(value) {
  const rounded = Number(value.toPrecision(3));
  if (rounded >= 1e15) return "above a million billions";
  return rounded >= 100 ? rounded.toLocaleString("en-US") : value.toPrecision(3);
}
