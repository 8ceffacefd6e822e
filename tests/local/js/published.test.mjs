// Published vectors: uniform draws, written as fractions, and the reports that follow from them.
import assert from "node:assert/strict";
import { test } from "node:test";

import { listedWords, openProtocol } from "./client.mjs";
import { ALL, direct, integer, LN3, record } from "./records.mjs";

const word = (fraction) => (BigInt(Math.round(fraction * 100)) * ALL) / 100n;
const words = (...fractions) => listedWords(fractions.map(word));

test("direct encoding of four values at epsilon ln 3", async () => {
  const protocol = await openProtocol(direct());
  const report = (...fractions) => protocol.randomize("c", { words: words(...fractions) });
  assert.equal(report(0.49), 2);
  assert.equal(report(0.51, 0), 3);
  assert.equal(report(0.51, 0.34), 0);
  assert.equal(report(0.99, 0.99), 1);
  assert.ok(Math.abs(protocol.epsilon() - Math.log(3)) < 1e-15);
});

test("the piecewise mechanism at epsilon 2 ln 3", async () => {
  const [steps, window] = [3 * 2 ** 28, 2 ** 28];
  const params = { steps, window, truth: String((3n * ALL) / 4n) };
  const bounds = { bounds: ["-1", "1"] };
  const made = record("piecewise", "2.1972245773362196", bounds, params, [integer("y", steps + window)]);
  const protocol = await openProtocol(made);
  const value = (...fractions) => -2 + (4 * protocol.randomize("0.5", { words: words(...fractions) })) / 2 ** 30;
  const near = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-7, `${found} is not ${wanted}`);
  near(value(0.5, 0.5), 0.75);
  near(value(0.8, 0), -2);
  near(value(0.8, 0.5), -0.5);
  near(value(0.8, 0.9), 1.7);
  near(protocol.epsilon(), 2 * Math.log(3));
});

test("the two coins of the textbook: truth three times in four", async () => {
  const params = { yes_if_yes: String((3n * ALL) / 4n), yes_if_no: String(ALL / 4n) };
  const protocol = await openProtocol(record("randomized_response", LN3, ["no", "yes"], params, [integer("y", 2)]));
  assert.equal(protocol.randomize("yes", { words: words(0.74) }), 1);
  assert.equal(protocol.randomize("yes", { words: words(0.76) }), 0);
  assert.equal(protocol.randomize("no", { words: words(0.24) }), 1);
  assert.equal(protocol.randomize("no", { words: words(0.26) }), 0);
});
