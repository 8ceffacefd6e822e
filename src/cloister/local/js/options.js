/**
 * What kinds of questions share whose answers are declared options: what is reported, and how it is asked and read.
 *
 * Every module of `kinds` exports these names; those that ask for one option export them from here. The two that make
 * and read elements of a page are given the tools for it, so that nothing here depends on a page.
 */

/**
 * @typedef {object} Tools
 * @property {(tag: string, attributes?: object, ...children: any[]) => any} make an element with children
 * @property {(type: string, name: string, value: any, text: string, isChosen: boolean, tell: Function) => any} choice
 *   one option to tick
 * @property {() => void} tell to call after every change
 */

/**
 * @typedef {object} QuestionKind
 * @property {(question: any) => readonly any[] | null} answers what reports are about, in order; null for the mean of a
 *   number between the question's bounds
 * @property {(question: any, record: any) => boolean} fits whether a protocol is for this kind of question
 * @property {(question: any, answer: any) => any} reported what the protocol is given for an answer, or for its text
 * @property {(question: any) => string} hint a further sentence about how to answer, perhaps empty
 * @property {(question: any, tools: Tools) => any} control the elements that ask for the answer
 * @property {(group: any, question: any) => any} read what was answered in these elements; undefined for nothing
 */

/** @param {any} question @returns {readonly any[]} */
export function answers(question) {
  return question.options;
}

/** @param {any} question @param {any} record @returns {boolean} */
export function fits(question, record) {
  return record.name !== "unary_set" && question.most === null;
}

/** Return the option that an answer means: itself, or, as forms give text, the one of that text. @param {any} question @param {any} answer @returns {any} */
export function reported(question, answer) {
  if (typeof answer !== "string" || question.options.includes(answer)) return answer;
  return question.options.find((/** @type {any} */ option) => String(option) === answer.trim()) ?? answer;
}

/** @returns {string} */
export function hint() {
  return "";
}

/** @param {any} question @param {Tools} tools @returns {any} */
export function control(question, tools) {
  return tools.make("div", { class: "options" }, picks(question, tools));
}

/**
 * Return one choice for each option.
 * @param {any} question
 * @param {Tools} tools
 * @param {string} [type]
 * @param {(event: any) => void} [check] what is done before a change is told
 * @returns {any[]}
 */
export function picks(question, { choice, tell }, type = "radio", check = () => {}) {
  const changed = (/** @type {any} */ event) => {
    check(event);
    tell();
  };
  return question.options.map((/** @type {any} */ option, /** @type {number} */ place) => {
    return choice(type, question.id, place, String(option), false, changed);
  });
}

/** Return the options that are ticked. @param {any} group @param {any} question @returns {any[]} */
export function ticked(group, question) {
  const found = [...group.querySelectorAll(`input[name="${question.id}"]:checked`)];
  return found.map(({ value }) => question.options[Number(value)]);
}

/** @param {any} group @param {any} question @returns {any} */
export function read(group, question) {
  return ticked(group, question)[0];
}
