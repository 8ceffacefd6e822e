/**
 * The one error of this module.
 */

/** A protocol, a value or a browser is not used, and what to do about it; the respondent's value is never quoted. */
export class RefusedError extends Error {
  /**
   * @param {string} problem what is wrong, in one sentence
   * @param {string} fix what helps
   */
  constructor(problem, fix) {
    super(`${problem} Fix: ${fix}`);
    this.name = "RefusedError";
    this.problem = problem;
    this.fix = fix;
  }
}

/** The fix for a record that is not as it should be. */
export const AGAIN = "get the protocol again from its server, or tell the people who run it.";

/**
 * Throw unless a claim holds.
 * @param {boolean} claim
 * @param {string} problem
 * @param {string} fix
 */
export function insist(claim, problem, fix) {
  if (!claim) throw new RefusedError(problem, fix);
}
