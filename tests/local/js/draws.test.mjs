import assert from "node:assert/strict";
import { test } from "node:test";

import { below, CERTAIN, chance } from "../../../src/cloister/local/js/draws.js";
import { listedWords } from "./client.mjs";

test("a toss compares one word with the threshold", () => {
  const toss = (word, threshold) => chance(listedWords([word]), threshold);
  assert.equal(toss(0n, 0n), false);
  assert.equal(toss(0n, 1n), true);
  assert.equal(toss(6n, 7n), true);
  assert.equal(toss(7n, 7n), false);
  assert.equal(toss(CERTAIN - 1n, CERTAIN), true);
  assert.equal(toss(CERTAIN - 1n, CERTAIN - 1n), false);
});

test("as many words lead to each integer", () => {
  // Words that give r have a product in [r 2^64, r 2^64 + limit): count them exactly for some results.
  for (const bound of [1n, 2n, 3n, 5n, 7n, 10n, 1000n, 2n ** 31n - 1n, 3n * 2n ** 28n, 2n ** 62n, 2n ** 62n - 57n]) {
    const limit = CERTAIN - (CERTAIN % bound);
    const ceiling = (value) => (value + bound - 1n) / bound;
    for (const result of [0n, 1n, bound / 2n, bound - 1n].filter((each) => each < bound)) {
      const first = ceiling(result * CERTAIN);
      const end = ceiling(result * CERTAIN + limit);
      assert.equal(end - first, CERTAIN / bound);
      assert.equal(below(listedWords([first]), bound), result);
      assert.equal(below(listedWords([end - 1n]), bound), result);
      for (let word = end; word < ceiling((result + 1n) * CERTAIN); word += 1n) {
        assert.throws(() => below(listedWords([word]), bound), /used up/);
      }
    }
  }
});

test("a refused word is followed by another one", () => {
  assert.equal(below(listedWords([CERTAIN / 3n, CERTAIN / 3n, CERTAIN - 1n]), 3n), 2n);
  assert.throws(() => below(listedWords([CERTAIN / 3n, CERTAIN / 3n]), 3n), /used up/);
});
