/**
 * A number in the browser: its mean is asked for, or with bins the label of the bin that it is in.
 *
 * Numbers outside of bounds count as the nearer of them. Numbers and edges are compared as JavaScript numbers: 0.3 lies
 * at the edge 3/10.
 */

import { readBounds } from "../domain.js";
import { insist } from "../errors.js";
import { approximate, isAtMost, readNumber } from "../exact.js";

/** @typedef {import("../exact.js").Ratio} Ratio */

const TELL = "do not answer, and tell the people who run the survey.";

/** @param {any} question @returns {readonly string[] | null} */
export function answers(question) {
  return question.bins === null ? null : edgesOf(question).labels;
}

/** @param {any} question @param {any} record @returns {boolean} */
export function fits(question, record) {
  return record.name !== "unary_set" && question.most === null;
}

/** @param {any} question @param {any} answer @returns {any} */
export function reported(question, answer) {
  const given = readNumber(answer, "The answer");
  const isWhole = !question.whole || given.top % given.bottom === 0n;
  insist(isWhole, "The answer is not a whole number.", "answer with a whole number, in digits.");
  const value = near(within(given, readBounds(question.bounds)));
  if (question.bins === null) return value;
  const { edges, labels } = edgesOf(question);
  return labels[edges.slice(1, -1).filter((edge) => near(edge) <= value).length];
}

/** @returns {string} */
export function hint() {
  return "";
}

/** @param {any} question @param {import("../options.js").Tools} tools @returns {any} */
export function control(question, { make, tell }) {
  const [low, high] = question.bounds;
  const id = `${question.id}-number`;
  const words = `From ${low} to ${high}. Numbers beyond count as the nearer of the two.`;
  const note = make("p", { class: "quiet small", id: `${id}-note` }, words);
  const field = make("input", {
    type: "number",
    inputmode: question.whole ? "numeric" : "decimal",
    step: question.whole ? 1 : "any",
    id,
    name: question.id,
    "aria-label": question.text,
    "aria-describedby": `${id}-note`,
    oninput: tell,
  });
  return make("div", { class: "number" }, field, note);
}

/** @param {any} group @param {any} question @returns {any} */
export function read(group, question) {
  const { value, validity } = group.querySelector("input[type=number]");
  if (validity.badInput) {
    throw Object.assign(new Error(`“${question.text}”: write a number, in digits.`), { question: question.id });
  }
  return value === "" ? undefined : value;
}

/**
 * Return the edges and labels of the bins of a number.
 * @param {any} question
 * @returns {{edges: readonly Ratio[], labels: readonly string[]}}
 */
function edgesOf(question) {
  const parts = Object.keys(question.bins ?? {}).sort().join(" ");
  insist(parts === "edges labels", "The survey has unknown or missing parts.", TELL);
  const { edges, labels } = question.bins;
  const areLists = Array.isArray(edges) && Array.isArray(labels) && edges.length === labels.length + 1;
  insist(areLists && edges.every((edge) => typeof edge === "string"), "The bins of a number are none.", TELL);
  const found = edges.map((/** @type {string} */ edge) => readNumber(edge, "An edge"));
  const areRising = found.every((edge, place) => place === 0 || !isAtMost(edge, found[place - 1]));
  insist(areRising, "The bins of a number are not in order.", TELL);
  return { edges: found, labels };
}

/** @param {Ratio} value @param {readonly [Ratio, Ratio]} bounds @returns {Ratio} */
function within(value, [low, high]) {
  if (isAtMost(value, low)) return low;
  return isAtMost(high, value) ? high : value;
}

/** Return the JavaScript number next to a rational. @param {Ratio} value @returns {number} */
function near(value) {
  const quotient = Number(value.top) / Number(value.bottom);
  return Number.isNaN(quotient) ? approximate(value) : quotient;
}
