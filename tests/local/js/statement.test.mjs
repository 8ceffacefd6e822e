import assert from "node:assert/strict";
import { test } from "node:test";

import { oddsFactor, openProtocol, statement, totalStatement } from "./client.mjs";
import { direct } from "./records.mjs";

test("the sentence names the factor", () => {
  const start = "Whatever you answer, the collector's odds about your true answer can change by at most a factor";
  for (const [epsilon, factor] of [
    ["0.0049", "1.01"],
    ["0.25", "1.29"],
    ["1/4", "1.29"],
    [1, "2.72"],
    ["4", "54.6"],
    [8, "2,990"],
    ["20", "486,000,000"],
  ]) {
    assert.equal(statement(epsilon), `${start} ${factor}.`);
  }
  assert.match(statement(500), /factor above a million billions\./);
});

test("what is stated is never below the true factor, and at most one step above", () => {
  for (let step = 1; step < 2000; step += 1) {
    const epsilon = step / 100;
    const stated = Number(statement(epsilon).split("factor ")[1].slice(0, -1).replaceAll(",", ""));
    assert.ok(stated >= Math.exp(epsilon) * (1 - 1e-12) && stated < Math.exp(epsilon) * 1.0101, `${epsilon}`);
  }
});

test("losses of several reports add up", () => {
  const start = "Whatever you answer, the collector's odds about all your true answers together can change by at most";
  assert.equal(totalStatement(["1/2", 0.5]), `${start} a factor 2.72.`);
  assert.equal(totalStatement(["4"]), `${start} a factor 54.6.`);
  assert.equal(totalStatement(["1", "0"]), totalStatement(["1"]));
  assert.match(totalStatement(["0"]), /You answer no question/);
  assert.equal(totalStatement([]), totalStatement(["0"]));
  assert.throws(() => totalStatement(["1", "-1"]), /Epsilon/);
});

test("nobody is told to be anonymous", async () => {
  const protocol = await openProtocol(direct());
  for (const text of [statement(1), totalStatement([1]), protocol.statement()]) assert.doesNotMatch(text, /anonym/i);
  assert.match(protocol.statement(), / a factor 3\.00\./);
  assert.equal(protocol.oddsFactor(), oddsFactor(protocol.stated));
});

test("the factor is e to the power of epsilon", () => {
  assert.equal(oddsFactor("1"), Math.E);
  assert.equal(oddsFactor(0.5), Math.exp(0.5));
  for (const wrong of [0, -1, NaN, Infinity, "0", "-1", "much", null, undefined]) {
    assert.throws(() => oddsFactor(wrong), /Epsilon/);
  }
});
