import assert from "node:assert/strict";
import { test } from "node:test";

import {
  approximate,
  atMostExponential,
  logarithm,
  nearest,
  ratio,
  readInteger,
  readNumber,
} from "../../../src/cloister/local/js/exact.js";
import { decimalText } from "../../../src/cloister/local/js/domain.js";

const equal = (a, top, bottom) => assert.equal(a.top * bottom, a.bottom * top);

test("numbers are read exactly", () => {
  for (const [text, top, bottom] of [
    ["0.1", 1n, 10n],
    [" -12.50 ", -25n, 2n],
    ["+3e-2", 3n, 100n],
    ["1/3", 1n, 3n],
    ["-7/3", -7n, 3n],
    [".5", 1n, 2n],
    ["2.", 2n, 1n],
    ["1E3", 1000n, 1n],
    [0.5, 1n, 2n],
    [-3, -3n, 1n],
    [0.1, 3602879701896397n, 36028797018963968n],
    [5e-324, 1n, 2n ** 1074n],
  ]) {
    equal(readNumber(text, "x"), top, bottom);
  }
});

test("what is not a finite number is refused", () => {
  const wrong = ["", ".", "-", "e5", "1,5", "0x10", "1e", "1/0", "1/-2", "NaN", "Infinity", "1e9999", "1_000", "1 2"];
  for (const value of [...wrong, "9".repeat(1001), NaN, Infinity, null, undefined, true, {}, [1], 5n]) {
    assert.throws(() => readNumber(value, "x"), /not a finite number/);
  }
});

test("integers are read exactly or refused", () => {
  assert.equal(readInteger("18446744073709551616", "x", 0n, 2n ** 64n), 2n ** 64n);
  assert.equal(readInteger(7, "x", 0n, 7n), 7n);
  for (const value of ["-1", 8, "8", "07", "+1", "1.0", "", " 1", 0.5, 2 ** 53, null, undefined, true, 1n, "0x1"]) {
    assert.throws(() => readInteger(value, "x", 0n, 7n), /not an integer|out of range/);
  }
});

test("an exponential is compared to far more digits than a threshold has", () => {
  // e = 2.71828182845904523536028747135266249775724709369995957496696762772407663...
  const digits = 271828182845904523536028747135266249775724709369995957496696762772407663n;
  const unit = 10n ** 71n;
  assert.equal(atMostExponential(ratio(digits, unit), ratio(1n, 1n)), true);
  assert.equal(atMostExponential(ratio(digits + 1n, unit), ratio(1n, 1n)), false);
  assert.equal(atMostExponential(ratio(3n, 1n), readNumber("1.0986122886681098", "ln 3")), true);
  assert.equal(atMostExponential(ratio(3n, 1n), readNumber("1.0986122886681096", "ln 3")), false);
  assert.equal(atMostExponential(ratio(485165195n, 1n), ratio(20n, 1n)), true);
  assert.equal(atMostExponential(ratio(485165196n, 1n), ratio(20n, 1n)), false);
  assert.equal(atMostExponential(ratio(10n ** 6n + 1n, 10n ** 6n), ratio(1n, 10n ** 6n)), true);
  assert.equal(atMostExponential(ratio(10n ** 6n + 2n, 10n ** 6n), ratio(1n, 10n ** 6n)), false);
  assert.equal(atMostExponential(ratio(1n, 0n), ratio(20n, 1n)), false);
});

test("logarithms are shown to about fifteen digits", () => {
  const near = (found, wanted) => assert.ok(Math.abs(found - wanted) <= 1e-14 * wanted, `${found} is not ${wanted}`);
  near(logarithm(ratio(3n, 1n)), Math.log(3));
  near(logarithm(ratio(10n ** 300n, 7n)), 300 * Math.LN10 - Math.log(7));
  near(logarithm(ratio(10n ** 9n + 1n, 10n ** 9n)), Math.log1p(1e-9));
  near(logarithm(ratio(3n, 2n)), Math.log(1.5));
  assert.equal(logarithm(ratio(1n, 1n)), 0);
  assert.equal(logarithm(ratio(5n, 0n)), Infinity);
  assert.equal(approximate(ratio(1n, 4n)), 0.25);
});

test("halves are rounded upwards", () => {
  assert.equal(nearest(ratio(1n, 2n), 1n), 1n);
  assert.equal(nearest(ratio(1n, 8n), 4n), 1n);
  assert.equal(nearest(ratio(1n, 8n), 3n), 0n);
  assert.equal(nearest(ratio(0n, 1n), 2n ** 30n), 0n);
  assert.equal(nearest(ratio(1n, 1n), 2n ** 30n), 2n ** 30n);
});

test("decimals are spelled as in Python", () => {
  for (const [value, text] of [
    [1.5, "1.5"],
    [2, "2.0"],
    [-0.25, "-0.25"],
    [0.0001, "0.0001"],
    [0.00001, "1e-05"],
    [1.5e-7, "1.5e-07"],
    [1e15, "1000000000000000.0"],
    [123456789012345680, "1.2345678901234568e+17"],
    [1e16, "1e+16"],
    [1e100, "1e+100"],
    [0.1 + 0.2, "0.30000000000000004"],
    [1 / 3, "0.3333333333333333"],
    [100.25, "100.25"],
    [5e-324, "5e-324"],
  ]) {
    assert.equal(decimalText(value), text);
  }
});
