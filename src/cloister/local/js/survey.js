/**
 * A whole survey in the browser: what may be chosen and what it costs, and the one thing that is sent.
 *
 * The server is not trusted: `openSurvey` checks its page first, see `survey_page.js`, and every sentence about
 * protection is made here from the checked numbers. A submission holds one report for each answered question, a
 * one-time id and the date; nothing else leaves the device, and nothing is stored. Within a given `memory` the same
 * answer to a question at a level gives the same report, however it is spelled. A memory holds answers: it must be a
 * variable of the page and never be written to a storage, nor a seed in its place: whoever has a seed and the report that
 * was sent can try all answers.
 */

import { isAnswer, tagged } from "./domain.js";
import { insist } from "./errors.js";
import { approximate } from "./exact.js";
import { sha256 } from "./hashes.js";
import { LEVELS_ARE_VISIBLE, totalOf, unanswered } from "./statement.js";
import { levelOf, OFF, openPage, sumOf } from "./survey_page.js";
import { systemWords } from "./words.js";

/** @typedef {import("./words.js").Words} Words */
/** @typedef {import("./protocol.js").Report} Report */
/** @typedef {import("./survey_page.js").OpenLevel} OpenLevel */
/** @typedef {import("./survey_page.js").OpenQuestion} OpenQuestion */
/** @typedef {string | number | boolean} Answer */
/** @typedef {Readonly<Record<string, unknown>>} Answers by the id of the question; those left out are not answered */
/** @typedef {string | Readonly<Record<string, string>>} Levels one for all questions, or by the id of the question */

/**
 * @typedef {object} Level
 * @property {string} name
 * @property {string} stated its epsilon as exact text; "0" if nothing is sent
 * @property {number} epsilon
 * @property {number} oddsFactor
 * @property {string} statement the sentence for the respondent
 */

/**
 * @typedef {object} Question
 * @property {string} id
 * @property {string} kind the name of a module of `kinds`
 * @property {string} text to show as text, never as HTML
 * @property {string} help perhaps empty
 * @property {readonly Answer[]} options in their order; empty for a number
 * @property {number | null} most how many options may be picked
 * @property {readonly string[] | null} bounds of a number, as exact texts
 * @property {boolean} whole whether a whole number is asked for
 * @property {readonly string[] | null} bins what is reported in place of a number
 * @property {boolean} optional whether it may be left out
 * @property {string} preselected the name of a level
 * @property {readonly Level[]} levels
 */

/** @typedef {Readonly<{epsilon: number, oddsFactor: number, statement: string}>} Total */

/**
 * @typedef {object} Submission
 * @property {string} schema
 * @property {string} survey
 * @property {string} fingerprint
 * @property {string} id
 * @property {string} day
 * @property {readonly Report[]} reports
 */

/**
 * @typedef {object} Survey
 * @property {string} id
 * @property {string} fingerprint the hash of all that is asked and done, the same for everybody who is asked
 * @property {string} title
 * @property {string} collector
 * @property {string} purpose
 * @property {Readonly<{admission: string, sentence: string, day: string, key: string | null}> | null} terms on which
 *   answers are taken, as published under the fingerprint
 * @property {string} notice what to show beside a choice of levels
 * @property {readonly Question[]} questions
 * @property {(levels?: Levels) => Total} total what all answers together can tell, at the chosen levels
 * @property {(answers: Answers, levels?: Levels, options?: Options) => Promise<Submission>} submission
 */

/**
 * @typedef {object} Options
 * @property {string} [token] the one-time token of an invitation; its hash becomes the id
 * @property {string} [day] such as "2026-05-04"; that of the terms, else today's in UTC, if left out
 * @property {Map<string, import("./protocol.js").Output>} [memory] outputs by question, level and answer; left out, every
 *   call draws anew
 * @property {Words} [words] for comparisons only
 */

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const SYSTEM = systemWords();

/**
 * Check the page of a survey and return what asks it.
 * @param {any} given parsed from the JSON of `Survey.to_browser`
 * @returns {Promise<Survey>}
 */
export async function openSurvey(given) {
  const page = copied(given);
  const opened = await openPage(page);
  const { survey: id, fingerprint, title, collector, purpose } = page;
  return Object.freeze({
    id,
    fingerprint,
    title,
    collector,
    purpose,
    terms: page.terms && Object.freeze(page.terms),
    notice: LEVELS_ARE_VISIBLE,
    questions: Object.freeze(opened.map(shown)),
    total: (levels = {}) => totalOf(approximate(sumOf(chosen(opened, levels)))),
    submission: async (answers, levels = {}, { token, day = page.terms?.day ?? today(), memory = new Map(), words = SYSTEM } = {}) => {
      insist(DAY.test(day), "The day is not a date without a time.", 'write for example "2026-05-04".');
      const isStated = page.terms === null || day === page.terms.day;
      insist(isStated, "Every submission to this survey states the same day.", "leave the day out.");
      const reports = reportsOf(id, opened, answers, chosen(opened, levels), { memory, words });
      const once = token === undefined ? newId(words) : await tokenId(token);
      return Object.freeze({ schema: "cloister.submission/1", survey: id, fingerprint, id: once, day, reports });
    },
  });
}

/** Return a copy that nobody else can change after it was checked. @param {any} page @returns {any} */
function copied(page) {
  return page === null || typeof page !== "object" ? null : JSON.parse(JSON.stringify(page));
}

/** @param {object} value @param {string} name @returns {boolean} */
function has(value, name) {
  return Object.prototype.hasOwnProperty.call(value, name);
}

/** @param {OpenQuestion} question @returns {Question} */
function shown({ page, levels }) {
  const { id, kind, text, help, most, whole, optional, default_level: preselected } = page;
  return Object.freeze({
    id,
    kind,
    text,
    help,
    options: Object.freeze([...page.options]),
    most,
    bounds: page.bounds && Object.freeze([...page.bounds]),
    whole,
    bins: page.bins && Object.freeze([...page.bins.labels]),
    optional,
    preselected,
    levels: Object.freeze(levels.map(shownLevel)),
  });
}

/** @param {OpenLevel} level @returns {Level} */
function shownLevel({ name, protocol, epsilon }) {
  if (protocol === null) {
    return Object.freeze({ name, stated: "0", epsilon: 0, oddsFactor: 1, statement: unanswered() });
  }
  return Object.freeze({
    name,
    stated: protocol.stated,
    epsilon: approximate(epsilon),
    oddsFactor: protocol.oddsFactor(),
    statement: protocol.statement(),
  });
}

/**
 * Return the level of each question.
 * @param {readonly OpenQuestion[]} questions
 * @param {Levels} levels
 * @returns {OpenLevel[]}
 */
function chosen(questions, levels) {
  const named = typeof levels === "string" ? Object.fromEntries(questions.map((one) => [one.page.id, levels])) : levels;
  checkNames(questions, named);
  return questions.map((question) => {
    const name = has(named, question.page.id) ? named[question.page.id] : question.page.default_level;
    const level = levelOf(question, name);
    insist(level !== undefined, "A question does not have the chosen level.", "choose one of its levels.");
    return /** @type {OpenLevel} */ (level);
  });
}

/** @param {readonly OpenQuestion[]} questions @param {any} given */
function checkNames(questions, given) {
  const known = new Set(questions.map((question) => question.page.id));
  const fits = given !== null && typeof given === "object" && Object.keys(given).every((name) => known.has(name));
  insist(fits, "The survey does not have such a question.", "name questions by their ids.");
}

/**
 * @param {string} survey
 * @param {readonly OpenQuestion[]} questions
 * @param {any} answers
 * @param {readonly OpenLevel[]} levels
 * @param {{memory: Map<string, import("./protocol.js").Output>, words: Words}} from
 * @returns {readonly Report[]}
 */
function reportsOf(survey, questions, answers, levels, { memory, words }) {
  checkNames(questions, answers);
  /** @type {Report[]} */
  const reports = [];
  const places = [...questions.keys()];
  const isGiven = places.map((n) => levels[n].name !== OFF && isAnswered(answers, questions[n].page.id));
  const isComplete = places.every((n) => isGiven[n] || questions[n].page.optional);
  insist(isComplete, "A question that must be answered is not.", "answer it, at any of its levels.");
  for (const place of places.filter((n) => isGiven[n])) {
    const { page, kind } = questions[place];
    const { name: level, protocol } = levels[place];
    if (protocol === null) continue;
    const value = kind.reported(page, answers[page.id]);
    const known = JSON.stringify([page.id, level, spelled(value)]);
    const y = memory.get(known) ?? protocol.randomize(value, { words });
    memory.set(known, y);
    reports.push(protocol.toReport(y, { survey, question: page.id, level }));
  }
  return Object.freeze(reports);
}

/** Return the one spelling of what is reported; picks have no order. @param {any} value @returns {string} */
function spelled(value) {
  if (Array.isArray(value)) return JSON.stringify(value.map(spelled).sort());
  return isAnswer(value) ? tagged(value) : "";
}

/** @param {any} answers @param {string} name @returns {boolean} */
function isAnswered(answers, name) {
  return has(answers, name) && answers[name] !== undefined && answers[name] !== null;
}

/** @returns {string} */
function today() {
  return new Date().toISOString().slice(0, 10);
}

/** Return a one-time id: the bytes of two words, from the lowest. @param {Words} words @returns {string} */
function newId(words) {
  return [words(), words()].map(bytesOf).join("");
}

/** @param {bigint} word @returns {string} */
function bytesOf(word) {
  const digits = word.toString(16).padStart(16, "0");
  return /** @type {RegExpMatchArray} */ (digits.match(/../g)).reverse().join("");
}

/** @param {unknown} token @returns {Promise<string>} */
async function tokenId(token) {
  const text = typeof token === "string" ? token.trim() : "";
  insist(text !== "", "The token is not a text.", "give the token as it was handed out.");
  return sha256(`cloister.token/1\n${text}`);
}
