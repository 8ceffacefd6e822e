/** A rating in the browser: one of several declared answers from low to high, side by side where they are short. */

import { picks } from "../options.js";

export { answers, fits, hint, read, reported } from "../options.js";

/** @param {any} question @param {import("../options.js").Tools} tools @returns {any} */
export function control(question, tools) {
  const isScale = question.options.every((/** @type {any} */ one) => String(one).length < 4);
  return tools.make("div", { class: isScale ? "scale" : "options" }, picks(question, tools));
}
