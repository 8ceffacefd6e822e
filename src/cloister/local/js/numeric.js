/**
 * Mechanisms for a number between public bounds. The code of a number is its exact place between them, from 0 to 1;
 * every mechanism rounds it to the nearest of its steps, halves upwards.
 */

import { below, CERTAIN, chance } from "./draws.js";
import { AGAIN, insist } from "./errors.js";
import { apart, larger, nearest, ONE, ratio } from "./exact.js";
import { count, exactly, integers, threshold } from "./law.js";

/** @typedef {import("./exact.js").Ratio} Ratio */
/** @typedef {import("./law.js").Law<Ratio>} Law */

/**
 * Return the exact place of a number between two bounds; outside of them it is that of the nearer bound.
 * @param {Ratio} value
 * @param {Ratio} low
 * @param {Ratio} high
 * @returns {Ratio} in 0 .. 1
 */
export function placeBetween(value, low, high) {
  const above = difference(value, low);
  const width = difference(high, low);
  const place = ratio(above.top * width.bottom, above.bottom * width.top);
  if (place.top <= 0n) return ratio(0n, 1n);
  return place.top >= place.bottom ? ONE : place;
}

/**
 * Duchi's mechanism for one number: one bit, likelier for larger numbers. Draws: one toss.
 * @param {any} params
 * @returns {Law}
 */
export function duchi(params) {
  exactly(params, ["high", "low", "steps"]);
  const steps = count(params, "steps");
  const [low, high] = [threshold(params, "low"), threshold(params, "high")];
  insist(low <= high, "The thresholds are in the wrong order.", AGAIN);
  return {
    fields: [integers("y", 2n)],
    worst: larger(apart(high, low), apart(CERTAIN - low, CERTAIN - high)),
    draw: (place, words) => {
      const step = nearest(place, steps);
      return [chance(words, low + (step * (high - low)) / steps) ? 1 : 0];
    },
  };
}

/**
 * A window of cells that slides with the number (piecewise mechanism, square wave): a cell inside of it, or one
 * outside, all of either kind alike. Draws: inside or outside; which cell.
 * @param {any} params
 * @returns {Law}
 */
export function slidingWindow(params) {
  exactly(params, ["steps", "truth", "window"]);
  const [steps, window] = [count(params, "steps"), count(params, "window")];
  const truth = threshold(params, "truth");
  return {
    fields: [integers("y", steps + window)],
    worst: apart(truth * steps, (CERTAIN - truth) * window),
    draw: (place, words) => {
      const step = nearest(place, steps);
      if (chance(words, truth)) return [Number(step + below(words, window))];
      const outside = below(words, steps);
      return [Number(outside < step ? outside : outside + window)];
    },
  };
}

/**
 * The hybrid of both: a public coin chooses the window (part 1) or Duchi's bit (part 0). Draws: that coin, then those
 * of the part.
 * @param {any} params
 * @returns {Law}
 */
export function hybrid(params) {
  exactly(params, ["duchi", "piecewise", "piecewise_share"]);
  const share = threshold(params, "piecewise_share");
  const [bit, window] = [duchi(params.duchi), slidingWindow(params.piecewise)];
  return {
    fields: [integers("part", 2n), window.fields[0]],
    worst: larger(bit.worst, window.worst),
    draw: (place, words) => (chance(words, share) ? [1, ...window.draw(place, words)] : [0, ...bit.draw(place, words)]),
  };
}

/** @param {Ratio} a @param {Ratio} b @returns {Ratio} */
function difference(a, b) {
  return ratio(a.top * b.bottom - b.top * a.bottom, a.bottom * b.bottom);
}
