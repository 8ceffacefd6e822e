/**
 * A question's protocol as its server describes it, and the reports that it makes.
 *
 * The server is not trusted. A record is used only if its name and version are known, its hashes are right, its output
 * space is the one that its parameters imply, and the exact likelihood ratio of its thresholds is at most e ** epsilon
 * for the epsilon that the respondent is told. Only what `toReport` returns leaves the device.
 *
 * Not promised: a server can give everybody another record, and so tell the reports apart. Records are public; who
 * compares fingerprints with others sees it.
 */

import * as categorical from "./categorical.js";
import { isAnswer, readBounds, readDomain, tagged } from "./domain.js";
import { AGAIN, insist } from "./errors.js";
import { atMostExponential, logarithm, readEpsilon, readNumber } from "./exact.js";
import { checkHashes } from "./hashes.js";
import * as numeric from "./numeric.js";
import { oddsFactor, statement } from "./statement.js";
import { systemWords } from "./words.js";

/** @typedef {import("./words.js").Words} Words */
/** @typedef {import("./law.js").Field} Field */
/** @typedef {import("./law.js").Value} Value */
/** @typedef {Value | readonly Value[]} Output the value of the only field, or the values of all fields in order */

/**
 * @typedef {object} Report
 * @property {string} schema
 * @property {string} protocol
 * @property {number} version
 * @property {string} epsilon
 * @property {string} domain_hash
 * @property {string} fingerprint
 * @property {Output} y
 * @property {string} [survey]
 * @property {string} [question]
 * @property {string} [level]
 */

/**
 * @typedef {object} Protocol
 * @property {string} name
 * @property {number} version
 * @property {string} stated the epsilon that the record states, as exact text
 * @property {string} fingerprint the hash of the record, the same for everybody who is asked
 * @property {readonly (string | number | boolean)[] | null} domain
 * @property {readonly string[] | null} bounds
 * @property {() => number} epsilon the loss that its thresholds have; never above the stated one
 * @property {() => number} oddsFactor e to the power of the stated epsilon
 * @property {() => string} statement the sentence for the respondent
 * @property {(value: unknown, options?: {words?: Words}) => Output} randomize
 * @property {(y: Output, context?: {survey?: string, question?: string, level?: string}) => Report} toReport
 */

/** @typedef {{takes: "answer" | "answers" | "number", law: (params: any, size: number) => any}} Kind */

/** @type {ReadonlyMap<string, Kind>} */
const KINDS = new Map([
  ["randomized_response", { takes: "answer", law: categorical.randomizedResponse }],
  ["direct_encoding", { takes: "answer", law: categorical.directEncoding }],
  ["symmetric_unary_encoding", { takes: "answer", law: categorical.unaryEncoding }],
  ["optimized_unary_encoding", { takes: "answer", law: categorical.unaryEncoding }],
  ["optimized_local_hashing", { takes: "answer", law: categorical.localHashing }],
  ["hadamard_response", { takes: "answer", law: categorical.hadamardResponse }],
  ["pram", { takes: "answer", law: categorical.transitionMatrix }],
  ["unary_set", { takes: "answers", law: categorical.unarySet }],
  ["duchi", { takes: "number", law: numeric.duchi }],
  ["piecewise", { takes: "number", law: numeric.slidingWindow }],
  ["square_wave", { takes: "number", law: numeric.slidingWindow }],
  ["hybrid", { takes: "number", law: numeric.hybrid }],
]);

const SYSTEM = systemWords();
const PARTS = new Set(
  "schema name version epsilon domain bounds domain_hash options params output_space fingerprint".split(" "),
);
const MOST_CHARACTERS = 200;

/** The protocols that this module knows, by name. */
export const PROTOCOLS = Object.freeze([...KINDS.keys()]);

/**
 * Check the record of a protocol and return what makes reports with it.
 * @param {any} record parsed from the server's JSON
 * @returns {Promise<Protocol>}
 */
export async function openProtocol(record) {
  const kind = kindOf(record);
  const { domain, bounds, encode, size } = inputs(record, kind);
  const law = kind.law(record.params, size);
  checkOutputSpace(law.fields, record.output_space);
  checkLoss(law.worst, record.epsilon);
  await checkHashes(record);
  const { name, version, epsilon: stated, domain_hash, fingerprint } = record;
  const head = { schema: "cloister.report/1", protocol: name, version, epsilon: stated, domain_hash, fingerprint };
  /** @type {Protocol} */
  const protocol = {
    name,
    version,
    stated,
    fingerprint,
    domain,
    bounds,
    epsilon: () => logarithm(law.worst),
    oddsFactor: () => oddsFactor(stated),
    statement: () => statement(stated),
    randomize: (value, { words = SYSTEM } = {}) => unpacked(law.draw(encode(value), words)),
    toReport: (y, context = {}) => {
      checkOutput(law.fields, y);
      return Object.freeze({ ...head, ...placeInSurvey(context), y });
    },
  };
  return Object.freeze(protocol);
}

/** @param {any} record @returns {Kind} */
function kindOf(record) {
  const isRecord = record !== null && typeof record === "object" && record.schema === "cloister.protocol/1";
  insist(isRecord, "This is not a protocol of a known schema.", AGAIN);
  const kind = KINDS.get(record.name);
  insist(kind !== undefined && record.version === 1, "The protocol or its version is unknown.", "use a newer client.");
  const isKnown = Object.keys(record).every((part) => PARTS.has(part));
  insist(isKnown, "The protocol has unknown parts.", "use a newer client.");
  return /** @type {Kind} */ (kind);
}

/** @param {any} record @param {Kind} kind */
function inputs(record, kind) {
  if (kind.takes === "number") {
    insist(record.domain === undefined, "A number has bounds and no domain.", AGAIN);
    const [low, high] = readBounds(record.bounds);
    const encode = (/** @type {unknown} */ value) => numeric.placeBetween(readNumber(value, "The answer"), low, high);
    return { domain: null, bounds: Object.freeze([...record.bounds]), encode, size: 0 };
  }
  insist(record.bounds === undefined, "A choice has a domain and no bounds.", AGAIN);
  const places = readDomain(record.domain);
  const encode = kind.takes === "answer" ? placeOf(places) : placesOf(places);
  return { domain: Object.freeze([...record.domain]), bounds: null, encode, size: places.size };
}

/** @param {ReadonlyMap<string, number>} places @returns {(value: any) => number} */
function placeOf(places) {
  return (value) => {
    const place = isAnswer(value) ? places.get(tagged(value)) : undefined;
    insist(place !== undefined, "The answer is missing or not among the declared ones.", "choose a declared answer.");
    return /** @type {number} */ (place);
  };
}

/** @param {ReadonlyMap<string, number>} places @returns {(values: any) => ReadonlySet<number>} */
function placesOf(places) {
  return (values) => {
    insist(Array.isArray(values), "The answers are not a list.", "give the chosen answers in a list.");
    const found = new Set(values.map(placeOf(places)));
    insist(found.size === values.length, "An answer is given twice.", "give every chosen answer once.");
    return found;
  };
}

/**
 * Return whether there is one item for each field, and every item fits its field.
 * @param {readonly Field[]} fields
 * @param {any} items
 * @param {(field: Field, item: any) => boolean} fits
 * @returns {boolean}
 */
function matches(fields, items, fits) {
  return Array.isArray(items) && items.length === fields.length && fields.every((field, n) => fits(field, items[n]));
}

/** @param {readonly Field[]} fields @param {any} stated */
function checkOutputSpace(fields, stated) {
  insist(matches(fields, stated?.fields, isField), "The output space is not that of the protocol.", AGAIN);
}

/** @param {Field} field @param {any} stated @returns {boolean} */
function isField(field, stated) {
  if (stated?.name !== field.name || stated.kind !== field.kind) return false;
  if (field.kind === "bits") return stated.length === field.length;
  return Number(field.low) === stated.low && Number(field.high) === stated.high;
}

/** @param {import("./exact.js").Ratio} worst @param {unknown} stated */
function checkLoss(worst, stated) {
  insist(
    atMostExponential(worst, readEpsilon(stated)),
    "The protocol protects less than it states.",
    "do not answer, and tell the people who run the survey.",
  );
}

/** @param {readonly Field[]} fields @param {any} y */
function checkOutput(fields, y) {
  const values = fields.length === 1 ? [y] : y;
  insist(matches(fields, values, isValue), "This is not an output of the protocol.", "report what randomize returned.");
}

/** @param {Field} field @param {any} value @returns {boolean} */
function isValue(field, value) {
  if (field.kind === "bits") return typeof value === "string" && value.length === field.length && /^[01]*$/.test(value);
  return Number.isSafeInteger(value) && BigInt(value) >= field.low && BigInt(value) <= field.high;
}

/** @param {readonly Value[]} values @returns {Output} */
function unpacked(values) {
  return values.length === 1 ? values[0] : Object.freeze([...values]);
}

/** @param {any} context @returns {{survey?: string, question?: string, level?: string}} */
function placeInSurvey(context) {
  const given = ["survey", "question", "level"].filter((name) => context[name] !== undefined);
  const named = given.map((name) => [name, context[name]]);
  insist(
    named.every(([, text]) => typeof text === "string" && text.length <= MOST_CHARACTERS),
    "A survey's name, question or level is not a short text.",
    "give them as they are in the survey.",
  );
  return Object.fromEntries(named);
}
