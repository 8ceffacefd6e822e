/** Several choices in the browser: up to so many of the declared options, as a list. */

import { picks, reported as optionOf, ticked } from "../options.js";

export { answers } from "../options.js";

/** @param {any} question @param {any} record @returns {boolean} */
export function fits(question, record) {
  return record.name === "unary_set" && Number(record.params.most) === question.most;
}

/** @param {any} question @param {any} answer @returns {any} */
export function reported(question, answer) {
  if (!Array.isArray(answer)) return optionOf(question, answer);
  return answer.map((one) => optionOf(question, one));
}

/** @param {any} question @returns {string} */
export function hint(question) {
  return `Pick at most ${question.most}.`;
}

/** @param {any} question @param {import("../options.js").Tools} tools @returns {any} */
export function control(question, tools) {
  const check = (/** @type {any} */ { target }) => {
    const chosen = [...target.form.elements[question.id]].filter(({ checked }) => checked);
    if (chosen.length > question.most) target.checked = false;
  };
  return tools.make("div", { class: "options" }, picks(question, tools, "checkbox", check));
}

/** @param {any} group @param {any} question @returns {any} */
export function read(group, question) {
  const chosen = ticked(group, question);
  return chosen.length === 0 ? undefined : chosen;
}
