import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { listedWords, openProtocol, RefusedError, systemWords } from "./client.mjs";
import { direct } from "./records.mjs";

const real = Object.getOwnPropertyDescriptor(globalThis, "crypto");
const replace = (value) => Object.defineProperty(globalThis, "crypto", { value, configurable: true });
afterEach(() => Object.defineProperty(globalThis, "crypto", real));

test("system words fill 64 bits and do not repeat", () => {
  const words = systemWords();
  const found = Array.from({ length: 3000 }, words);
  assert.equal(new Set(found).size, found.length);
  for (let bit = 0n; bit < 64n; bit += 1n) {
    const ones = found.filter((word) => (word >> bit) & 1n).length;
    assert.ok(ones > 1200 && ones < 1800, `bit ${bit} is set in ${ones} of 3000 words`);
  }
});

test("words are handed out once, in the order in which the browser gave them", () => {
  const blocks = [];
  replace({
    getRandomValues: (block) => {
      assert.ok(block.byteLength <= 65536);
      block.set(Array.from(block, (_, n) => BigInt(blocks.length * block.length + n)));
      blocks.push(block);
      return block;
    },
  });
  const words = systemWords();
  const found = Array.from({ length: 2500 }, words);
  assert.deepEqual(
    found,
    Array.from({ length: 2500 }, (_, n) => BigInt(n)),
  );
  assert.equal(blocks.length, 3);
  assert.ok(
    blocks[0].slice(0, 100).every((word) => word === 0n),
    "used words are wiped",
  );
});

test("without secure randomness nothing is reported, whatever Math.random offers", async () => {
  const protocol = await openProtocol(direct());
  const refusal = (pattern) => (error) => error instanceof RefusedError && pattern.test(error.message);
  for (const missing of [undefined, {}, { getRandomValues: null }]) {
    replace(missing);
    assert.throws(() => systemWords()(), refusal(/no secure randomness.*current browser/));
    assert.throws(() => protocol.randomize("a"), refusal(/no secure randomness/));
  }
  replace({ getRandomValues: (block) => block });
  assert.throws(() => systemWords()(), refusal(/does not work/));
  replace({ getRandomValues: (block) => block.fill(42n) });
  assert.throws(() => systemWords()(), refusal(/does not work/));
  Object.defineProperty(globalThis, "crypto", real);
  assert.ok([0, 1, 2, 3].includes(protocol.randomize("a")));
});

test("a failing generator is asked again, and its words are not used", () => {
  let calls = 0;
  replace({
    getRandomValues: (block) => {
      calls += 1;
      if (calls === 1) throw new Error("QuotaExceededError");
      return block.set(Array.from(block, (_, n) => BigInt(n + 5)));
    },
  });
  const words = systemWords();
  assert.throws(words, /Quota/);
  assert.equal(words(), 5n);
});

test("listed words are checked and end", () => {
  const words = listedWords([1n, 2n ** 64n - 1n]);
  assert.deepEqual([words(), words()], [1n, 2n ** 64n - 1n]);
  assert.throws(words, /used up/);
  for (const wrong of [-1n, 2n ** 64n, 3, "3"]) assert.throws(listedWords([wrong]), /64 bits/);
});
