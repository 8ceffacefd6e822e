/**
 * Uniform 64-bit words, taken one at a time.
 *
 * `systemWords` asks the browser's cryptographic generator, block by block. There is no other source: where it is
 * missing or does nothing, no report is made. `listedWords` hands out given words, so that two implementations can be
 * compared; what is made with it is not private.
 */

import { insist } from "./errors.js";

/** @typedef {() => bigint} Words returns the next word, in 0 .. 2**64 - 1 */

const BLOCK = 1024; // 8 KiB; getRandomValues gives at most 64 KiB at once.

/**
 * Return words from crypto.getRandomValues.
 * @returns {Words}
 */
export function systemWords() {
  const block = new BigUint64Array(BLOCK);
  let used = BLOCK;
  return () => {
    if (used === BLOCK) {
      fill(block);
      used = 0;
    }
    const word = block[used];
    block[used] = 0n;
    used += 1;
    return word;
  };
}

/**
 * Return words from a list: for comparisons, never for privacy.
 * @param {Iterable<bigint>} list
 * @returns {Words}
 */
export function listedWords(list) {
  const words = [...list];
  let used = 0;
  return () => {
    insist(used < words.length, "The list of random words is used up.", "list more words.");
    const word = words[used];
    used += 1;
    insist(
      typeof word === "bigint" && word === BigInt.asUintN(64, word),
      "A listed word is not an integer of 64 bits.",
      "list BigInts from 0n to 2n ** 64n - 1n.",
    );
    return word;
  };
}

/** @param {BigUint64Array} block */
function fill(block) {
  const source = globalThis.crypto;
  insist(
    typeof source?.getRandomValues === "function",
    "This browser offers no secure randomness, so the answer cannot be protected.",
    "use a current browser.",
  );
  source.getRandomValues(block);
  insist(
    block.some((word) => word !== block[0]),
    "The randomness of this browser does not work, so the answer cannot be protected.",
    "use a current browser without add-ons that replace its randomness.",
  );
}
