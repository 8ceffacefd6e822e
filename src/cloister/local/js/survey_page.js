/**
 * A survey's page as its server describes it, checked part by part before anybody is asked.
 *
 * Every level's record must be a protocol that protects as much as the level states, for the answers of its own
 * question. The sentences and numbers of the page must be those that follow from the records, the total that of the
 * preselected levels, and all of it what the published definition says, whose hash is the fingerprint. Texts are data:
 * whoever shows them must show them as text.
 */

import { isAnswer, tagged } from "./domain.js";
import { insist } from "./errors.js";
import { approximate, isAtMost, plus, ratio, readEpsilon, readNumber } from "./exact.js";
import { sha256 } from "./hashes.js";
import { KINDS } from "./kinds/index.js";
import { openProtocol } from "./protocol.js";
import { unanswered } from "./statement.js";

/** @typedef {import("./exact.js").Ratio} Ratio */
/** @typedef {import("./protocol.js").Protocol} Protocol */
/** @typedef {{name: string, epsilon: Ratio, protocol: Protocol | null, fingerprint: string | null}} OpenLevel */
/** @typedef {import("./options.js").QuestionKind} QuestionKind */
/** @typedef {{page: any, kind: QuestionKind, levels: readonly OpenLevel[]}} OpenQuestion */

/** The level of those who do not answer. */
export const OFF = "off";

const ZERO = ratio(0n, 1n);
const TELL = "do not answer, and tell the people who run the survey.";
const MOST_QUESTIONS = 200;
const MOST_LEVELS = 8;
const MOST_CHARACTERS = 1000;
const MOST_DEFINITION = 2 ** 24;
const MOST_FACTOR = 1e300;
const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const PARTS = {
  page: "schema survey fingerprint definition title collector purpose notice total terms submission questions",
  total: "epsilon statement odds_factor beliefs",
  terms: "admission sentence day key",
  submission: "schema survey fingerprint",
  question: "id kind text help options most bounds whole bins optional default_level levels",
  level: "name epsilon statement odds_factor beliefs protocol",
};

/**
 * Check a page and return its questions with their opened levels.
 * @param {any} page parsed from the server's JSON
 * @returns {Promise<readonly OpenQuestion[]>}
 */
export async function openPage(page) {
  insist(page?.schema === "cloister.survey_page/1", "This is not a survey of a known schema.", "use a newer client.");
  hasParts(page, "page");
  hasParts(page.total, "total");
  hasParts(page.submission, "submission");
  const { schema, survey, fingerprint } = page.submission;
  const fits = schema === "cloister.submission/1" && survey === page.survey && fingerprint === page.fingerprint;
  insist(fits, "The page would send a submission to another survey.", TELL);
  insist(areTexts(page.title, page.collector, page.purpose), "A text of the survey is none.", TELL);
  if (page.terms !== null) hasParts(page.terms, "terms");
  const questions = page.questions;
  const isList = Array.isArray(questions) && questions.length > 0 && questions.length <= MOST_QUESTIONS;
  insist(isList, "The survey has no list of questions.", TELL);
  const opened = await Promise.all(questions.map(openQuestion));
  isEachOnce(opened.map((one) => one.page.id), "The survey has a question twice.");
  checkTotal(page.total, opened);
  await checkDefinition(page, opened);
  return opened;
}

/** @param {any} page @returns {Promise<OpenQuestion>} */
async function openQuestion(page) {
  hasParts(page, "question");
  const kind = /** @type {QuestionKind} */ (KINDS.get(page.kind));
  insist(isName(page.id) && kind !== undefined, "A question or its kind is unknown.", "use a newer client.");
  insist(areTexts(page.text, page.help), "A text of the survey is none.", TELL);
  const isList = Array.isArray(page.levels) && page.levels.length > 0 && page.levels.length <= MOST_LEVELS;
  insist(isList, "A question has no list of levels.", TELL);
  const levels = await Promise.all(page.levels.map((/** @type {any} */ level) => openLevel(kind, page, level)));
  const names = levels.map((level) => level.name);
  isEachOnce(names, "A question has a level twice.");
  insist(names.includes(page.default_level), "The preselected level is none of the question's.", TELL);
  insist(page.optional === names.includes(OFF), "The page does not say whether a question must be answered.", TELL);
  return { page, kind, levels };
}

/** @param {QuestionKind} kind @param {any} question @param {any} page @returns {Promise<OpenLevel>} */
async function openLevel(kind, question, page) {
  hasParts(page, "level");
  const { name, protocol: record } = page;
  insist(isName(name) && (name === OFF) === (record === null), "A level has no name, or no protocol.", TELL);
  if (name === OFF) {
    insist(page.epsilon === "0" && page.statement === unanswered(), "The page states another protection.", TELL);
    return { name, epsilon: ZERO, protocol: null, fingerprint: null };
  }
  const protocol = await openProtocol(record);
  asksTheSame(kind, question, record);
  const states = page.epsilon === protocol.stated && page.statement === protocol.statement();
  insist(states && isNear(page.odds_factor, protocol.oddsFactor()), "The page states another protection.", TELL);
  return { name, epsilon: readEpsilon(protocol.stated), protocol, fingerprint: protocol.fingerprint };
}

/** Refuse the record of another question. @param {QuestionKind} kind @param {any} question @param {any} record */
function asksTheSame(kind, question, record) {
  const answers = kind.answers(question);
  const fits = answers === null ? isSame(record.bounds, question.bounds) : isSameDomain(record.domain, answers);
  insist(fits, "A protocol is for other answers than its question.", TELL);
  insist(kind.fits(question, record), "A protocol is for another kind of question.", TELL);
}

/**
 * Return the sum of what some levels cost.
 * @param {readonly OpenLevel[]} levels
 * @returns {Ratio}
 */
export function sumOf(levels) {
  return levels.map((level) => level.epsilon).reduce(plus, ZERO);
}

/** @param {OpenQuestion} question @param {string} name @returns {OpenLevel | undefined} */
export function levelOf(question, name) {
  return question.levels.find((level) => level.name === name);
}

/** @param {any} total @param {readonly OpenQuestion[]} questions */
function checkTotal(total, questions) {
  const preselected = questions.map((one) => /** @type {OpenLevel} */ (levelOf(one, one.page.default_level)));
  const sum = sumOf(preselected);
  const stated = readNumber(typeof total.epsilon === "string" ? total.epsilon : NaN, "The total");
  const isSum = isAtMost(stated, sum) && isAtMost(sum, stated);
  const factor = Math.min(Math.exp(approximate(sum)), MOST_FACTOR);
  const isStated = isSum && isNear(total.odds_factor, factor);
  insist(isStated, "The preselected levels protect otherwise than the page states.", TELL);
}

/** Refuse a page that is not what was published. @param {any} page @param {readonly OpenQuestion[]} questions */
async function checkDefinition(page, questions) {
  const text = page.definition;
  insist(typeof text === "string" && text.length <= MOST_DEFINITION, "The survey has no definition.", TELL);
  insist((await sha256(text)) === page.fingerprint, "The survey does not have its stated fingerprint.", TELL);
  const defined = parsed(text);
  const fits =
    isSame([defined?.id, defined?.title, defined?.collector], [page.survey, page.title, page.collector]) &&
    (defined.purpose ?? "") === page.purpose &&
    isSame(termsOf(defined.terms), termsOf(page.terms)) &&
    Array.isArray(defined.questions) &&
    defined.questions.length === questions.length &&
    questions.every((question, place) => isDefined(question, defined.questions[place], defined.levels));
  insist(fits, "The page does not ask what was published under its fingerprint.", TELL);
}

/** Return who may answer, by which key, and the day of submissions, in one order. @param {any} terms @returns {any} */
function termsOf(terms) {
  return terms ? [terms.admission, terms.sentence, terms.day, terms.key ?? null] : null;
}

/** @param {OpenQuestion} question @param {any} defined @param {any} common @returns {boolean} */
function isDefined({ page, levels }, defined, common) {
  const names = defined.coins ? [OFF, "coins"] : Object.keys(defined.levels ?? common);
  const records = levels.filter((level) => level.name !== OFF).map((level) => [level.name, level.fingerprint]);
  return (
    isSame(
      [defined.id, defined.kind, defined.text, defined.help ?? "", defined.most ?? null, defined.whole ?? false],
      [page.id, page.kind, page.text, page.help, page.most, page.whole],
    ) &&
    isSame(defined.options ?? [], page.options) &&
    areSameNumbers(defined.bounds ?? null, page.bounds) &&
    areSameNumbers(defined.bins ?? null, page.bins?.edges ?? null) &&
    defined.preselected === page.default_level &&
    isSame([...names].sort(), levels.map((level) => level.name).sort()) &&
    isSame(Object.entries(defined.protocols).sort(), records.sort())
  );
}

/** @param {any} value @param {keyof typeof PARTS} what */
function hasParts(value, what) {
  const given = value !== null && typeof value === "object" ? Object.keys(value).sort().join(" ") : "";
  insist(given === PARTS[what].split(" ").sort().join(" "), "The survey has unknown or missing parts.", TELL);
}

/** @param {readonly string[]} names @param {string} problem */
function isEachOnce(names, problem) {
  insist(new Set(names).size === names.length, problem, TELL);
}

/** @param {unknown} value @returns {boolean} */
function isName(value) {
  return typeof value === "string" && NAME.test(value);
}

/** @param {...unknown} values @returns {boolean} */
function areTexts(...values) {
  return values.every((value) => typeof value === "string" && value.length <= 2 * MOST_CHARACTERS);
}

/** @param {unknown} a @param {unknown} b @returns {boolean} */
function isSame(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** @param {any} domain @param {any} answers @returns {boolean} */
function isSameDomain(domain, answers) {
  return (
    Array.isArray(answers) &&
    answers.every(isAnswer) &&
    isSame(domain?.map(tagged), answers.map(tagged))
  );
}

/** @param {any} defined numbers or texts @param {any} stated texts @returns {boolean} */
function areSameNumbers(defined, stated) {
  if (defined === null || stated === null) return defined === stated;
  const [a, b] = [defined, stated].map((list) => list.map((/** @type {any} */ one) => readNumber(String(one), "It")));
  return a.length === b.length && a.every((/** @type {Ratio} */ one, /** @type {number} */ place) => {
    return isAtMost(one, b[place]) && isAtMost(b[place], one);
  });
}

/** @param {unknown} stated @param {number} value @returns {boolean} */
function isNear(stated, value) {
  return typeof stated === "number" && Math.abs(stated - value) <= 1e-9 * value;
}

/** @param {string} text @returns {any} */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
