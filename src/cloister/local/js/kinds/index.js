/** The kinds of questions that a browser can ask, by name: every module of this folder. */

// Written by `make generated`.
import * as multiple_choice from "./multiple_choice.js";
import * as number from "./number.js";
import * as rating from "./rating.js";
import * as single_choice from "./single_choice.js";
import * as yes_no from "./yes_no.js";

/** @type {ReadonlyMap<string, import("../options.js").QuestionKind>} */
export const KINDS = new Map(Object.entries({ multiple_choice, number, rating, single_choice, yes_no }));
