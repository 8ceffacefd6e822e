import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { openProtocol, PROTOCOLS, RefusedError } from "./client.mjs";
import { ALL, direct, fingerprinted, integer, LN3, record, sealed } from "./records.mjs";

const real = Object.getOwnPropertyDescriptor(globalThis, "crypto");
afterEach(() => Object.defineProperty(globalThis, "crypto", real));

const refused = (made, pattern) =>
  assert.rejects(
    () => openProtocol(made),
    (error) => {
      assert.ok(error instanceof RefusedError, `${error?.stack}`);
      assert.match(error.message, pattern);
      return true;
    },
  );

const WEAK = /protects less than it states/;
const quarter = ALL / 4n;

test("a report says what it was made with and nothing else", async () => {
  const made = direct();
  const protocol = await openProtocol(made);
  assert.deepEqual(protocol.toReport(2), {
    schema: "cloister.report/1",
    protocol: "direct_encoding",
    version: 1,
    epsilon: LN3,
    domain_hash: made.domain_hash,
    fingerprint: made.fingerprint,
    y: 2,
  });
  const place = { survey: "health", question: "q1", level: "high", name: "Ada" };
  assert.deepEqual(Object.keys(protocol.toReport(2, place)).slice(-4), ["survey", "question", "level", "y"]);
  for (const wrong of [{ survey: 5 }, { level: "x".repeat(201) }]) {
    assert.throws(() => protocol.toReport(2, wrong), /not a short text/);
  }
});

test("everything that is handed out is frozen", async () => {
  const protocol = await openProtocol(direct());
  for (const part of [protocol, protocol.domain, protocol.toReport(1), PROTOCOLS]) assert.ok(Object.isFrozen(part));
});

test("a later change of the record changes nothing", async () => {
  const made = direct();
  const protocol = await openProtocol(made);
  made.params.truth = String(ALL);
  made.domain[0] = "z";
  made.epsilon = "20";
  assert.equal(protocol.toReport(0).epsilon, LN3);
  assert.throws(() => protocol.randomize("z"), /not among the declared/);
  const seen = new Set(Array.from({ length: 400 }, () => protocol.randomize("a")));
  assert.equal(seen.size, 4);
});

test("only outputs of the protocol become reports", async () => {
  const protocol = await openProtocol(direct());
  for (const wrong of ["a", -1, 4, 1.5, NaN, null, undefined, [1], "1", 1n, true]) {
    assert.throws(() => protocol.toReport(wrong), /not an output/);
  }
  const params = { keep: String(3n * quarter), flip: String(quarter) };
  const fields = [{ name: "bits", kind: "bits", length: 2 }];
  const unary = await openProtocol(
    record("symmetric_unary_encoding", "2.1972245773362196", ["n", "y"], params, fields),
  );
  for (const wrong of ["0", "000", "0a", 0, ["01"], "0\n", ""]) {
    assert.throws(() => unary.toReport(wrong), /not an output/);
  }
  assert.equal(unary.toReport("01").y, "01");
});

test("a value outside of the domain is refused and not quoted", async () => {
  const protocol = await openProtocol(direct());
  for (const wrong of ["secret", "A", "", null, undefined, 0, 1, true, NaN, ["a"], { a: 1 }, "s:a", "constructor"]) {
    assert.throws(
      () => protocol.randomize(wrong),
      (error) =>
        error instanceof RefusedError && /not among the declared/.test(error.message) && !/secret/.test(error.stack),
    );
  }
});

test("values are told apart by their type", async () => {
  const domain = ["1", "true", "1.5"];
  const made = record("direct_encoding", LN3, domain, { truth: String(ALL / 2n) }, [integer("y", 3)]);
  const protocol = await openProtocol(made);
  for (const wrong of [1, true, 1.5]) assert.throws(() => protocol.randomize(wrong), /not among the declared/);
});

test("several answers are checked one by one", async () => {
  const params = { keep: String(ALL / 2n + 1n), flip: String(ALL / 2n), most: 2 };
  const fields = [{ name: "bits", kind: "bits", length: 4 }];
  const protocol = await openProtocol(record("unary_set", "1", ["a", "b", "c", "d"], params, fields));
  assert.match(protocol.randomize(["a", "d"]), /^[01]{4}$/);
  assert.match(protocol.randomize([]), /^[01]{4}$/);
  assert.throws(() => protocol.randomize(["a", "b", "c"]), /too many answers.*at most 2/);
  assert.throws(() => protocol.randomize(["a", "a"]), /given twice/);
  assert.throws(() => protocol.randomize(["a", "z"]), /not among the declared/);
  assert.throws(() => protocol.randomize("ab"), /not a list/);
});

test("numbers are clamped, and what is no number is refused", async () => {
  const params = { steps: 4, low: String(quarter), high: String(3n * quarter) };
  const protocol = await openProtocol(record("duchi", LN3, { bounds: ["0", "10"] }, params, [integer("y", 2)]));
  const at = (value, word) => protocol.randomize(value, { words: () => word });
  assert.equal(at("-99", quarter - 1n), 1);
  assert.equal(at("-99", quarter), 0);
  assert.equal(at("99", 3n * quarter - 1n), 1);
  assert.equal(at("99", 3n * quarter), 0);
  assert.equal(at("1.25", quarter + quarter / 2n - 1n), 1);
  assert.equal(at("1.2499", quarter), 0);
  for (const wrong of ["", "old", "1,5", NaN, Infinity, null, undefined, true, ["5"]]) {
    assert.throws(() => protocol.randomize(wrong), /not a finite number/);
  }
});

test("thresholds that protect less than stated are refused, by a single step", async () => {
  await openProtocol(direct({ epsilon: LN3 }));
  await refused(direct({ epsilon: "1.0986122886681096" }), WEAK);
  await refused(direct({ epsilon: "1" }), WEAK);
  await refused(direct({ params: { truth: String(ALL / 2n + 10_000n) } }), WEAK);
  await refused(direct({ params: { truth: String(ALL) } }), WEAK);
  await refused(direct({ params: { truth: "0" } }), WEAK);
});

test("every kind of protocol has its loss computed", async () => {
  const text = (value) => (typeof value === "bigint" ? String(value) : value);
  const texts = (params) => Object.fromEntries(Object.entries(params).map(([name, value]) => [name, text(value)]));
  const bitsOf = (length) => [{ name: "bits", kind: "bits", length }];
  const abc = ["a", "b", "c"];
  const [duchi, window] = [
    { steps: 8, low: quarter, high: 3n * quarter },
    { steps: 8, window: 8, truth: 3n * quarter },
  ];
  // Each of these has a worst ratio of 3, or of 9 where two bits differ; the second list is broken by one threshold.
  const nine = "2.1972245773362196";
  const bounds = { bounds: ["0", "1"] };
  const fields = [integer("y", 16)];
  const loose = [
    ["randomized_response", LN3, ["n", "y"], texts({ truth: 3n * quarter }), [integer("y", 2)]],
    [
      "randomized_response",
      LN3,
      ["n", "y"],
      texts({ yes_if_yes: 3n * quarter, yes_if_no: quarter }),
      [integer("y", 2)],
    ],
    [
      "randomized_response",
      LN3,
      ["n", "y"],
      texts({ yes_if_yes: quarter, yes_if_no: 3n * quarter }),
      [integer("y", 2)],
    ],
    ["symmetric_unary_encoding", nine, abc, texts({ keep: 3n * quarter, flip: quarter }), bitsOf(3)],
    ["optimized_unary_encoding", LN3, abc, texts({ keep: ALL / 2n, flip: quarter }), bitsOf(3)],
    ["unary_set", LN3, abc, texts({ keep: ALL / 2n, flip: quarter, most: 1 }), bitsOf(3)],
    ["unary_set", "1.7917594692280552", abc, texts({ keep: ALL / 2n, flip: quarter, most: 2 }), bitsOf(3)],
    ["unary_set", "2.0794415416798361", abc, texts({ keep: ALL / 2n, flip: quarter, most: 3 }), bitsOf(3)],
    [
      "optimized_local_hashing",
      LN3,
      abc,
      texts({ prime: 5, buckets: 2, truth: 3n * quarter }),
      [integer("a", 5), integer("b", 5), integer("y", 2)],
    ],
    ["hadamard_response", LN3, abc, texts({ order: 4, truth: 3n * quarter }), [integer("y", 4)]],
    ["pram", LN3, ["n", "y"], { rows: [[String(quarter)], [String(3n * quarter)]] }, [integer("y", 2)]],
    ["duchi", LN3, bounds, texts(duchi), [integer("y", 2)]],
    ["piecewise", LN3, bounds, texts(window), fields],
    ["square_wave", LN3, bounds, texts(window), fields],
    [
      "hybrid",
      LN3,
      bounds,
      { piecewise_share: String(ALL / 2n), duchi: texts(duchi), piecewise: texts(window) },
      [integer("part", 2), ...fields],
    ],
  ];
  for (const [name, epsilon, domain, params, space] of loose) {
    const protocol = await openProtocol(record(name, epsilon, domain, params, space));
    assert.ok(Math.abs(protocol.epsilon() - Number(epsilon)) < 1e-14, `${name}: ${protocol.epsilon()}`);
    const less = String(Number(epsilon) - 1e-12);
    await refused(record(name, less, domain, params, space), WEAK);
  }
  assert.deepEqual(new Set([...loose.map(([name]) => name), "direct_encoding"]), new Set(PROTOCOLS));
});

test("designs that prove an answer are refused at any epsilon", async () => {
  const forcedYes = { yes_if_yes: String(ALL), yes_if_no: String(ALL / 2n) };
  await refused(record("randomized_response", "20", ["n", "y"], forcedYes, [integer("y", 2)]), WEAK);
  const missingLie = {
    rows: [
      [String(quarter), String(quarter)],
      [String(quarter), String(2n * quarter)],
      [String(quarter), String(2n * quarter)],
    ],
  };
  await refused(record("pram", "20", ["a", "b", "c"], missingLie, [integer("y", 3)]), WEAK);
  const always = { steps: 8, low: "0", high: String(ALL) };
  await refused(record("duchi", "20", { bounds: ["0", "1"] }, always, [integer("y", 2)]), WEAK);
  const bits = [{ name: "bits", kind: "bits", length: 2 }];
  for (const [keep, flip] of [
    [ALL, quarter],
    [quarter, 0n],
    [0n, quarter],
    [ALL, 0n],
  ]) {
    const params = { keep: String(keep), flip: String(flip) };
    await refused(record("optimized_unary_encoding", "20", ["a", "b"], params, bits), WEAK);
  }
  const window = { steps: 8, window: 8, truth: String(ALL) };
  await refused(record("piecewise", "20", { bounds: ["0", "1"] }, window, [integer("y", 16)]), WEAK);
});

test("an answer that nobody ever reports proves nothing", async () => {
  const rows = [
    [String(quarter), String(quarter)],
    [String(3n * quarter), String(3n * quarter)],
    [String(ALL / 2n), String(ALL / 2n)],
  ];
  const protocol = await openProtocol(record("pram", LN3, ["a", "b", "c"], { rows }, [integer("y", 3)]));
  assert.ok(Math.abs(protocol.epsilon() - Math.log(3)) < 1e-15);
  const none = rows.map(() => ["0", "0"]);
  assert.equal(
    (await openProtocol(record("pram", "1", ["a", "b", "c"], { rows: none }, [integer("y", 3)]))).epsilon(),
    0,
  );
});

test("a lie that hides in one part of a hybrid is found", async () => {
  const good = { steps: 8, low: String(quarter), high: String(3n * quarter) };
  const bad = { steps: 8, window: 8, truth: String(3n * quarter + 9999n) };
  const fields = [integer("part", 2), integer("y", 16)];
  const hybrid = (duchi, piecewise) =>
    record("hybrid", LN3, { bounds: ["0", "1"] }, { piecewise_share: "1", duchi, piecewise }, fields);
  await refused(hybrid(good, bad), WEAK);
  const lower = { ...good, low: String(quarter - 9999n) };
  const higher = { ...good, high: String(3n * quarter + 9999n) };
  const window = { ...bad, truth: String(3n * quarter) };
  await refused(hybrid(lower, window), WEAK);
  await refused(hybrid(higher, window), WEAK);
  const uneven = { ...good, low: String(ALL / 2n), high: String(ALL - ALL / 6n) };
  await openProtocol(hybrid(uneven, window));
  await refused(hybrid({ ...uneven, high: String(ALL - ALL / 6n + 9999n) }, window), WEAK);
  await openProtocol(hybrid(good, window));
});

test("hashes must fit", async () => {
  const made = direct();
  await refused({ ...made, domain_hash: "0".repeat(64) }, /stated hashes/);
  await refused(fingerprinted({ ...made, domain_hash: "0".repeat(64) }), /stated hashes/);
  await refused(fingerprinted({ ...made, domain: ["b", "a", "c", "d"] }), /stated hashes/);
  await refused({ ...made, fingerprint: "0".repeat(64) }, /stated hashes/);
  await refused({ ...made, fingerprint: undefined }, /stated hashes/);
  await refused({ ...made, domain: ["a", "b", "d", "c"] }, /stated hashes/);
  await refused({ ...made, options: { tag: "respondent 7" } }, /stated hashes/);
  const { domain_hash, ...unhashed } = made;
  await refused(unhashed, /stated hashes/);
  await refused({ ...made, domain: ["a", "b", "c", 4] }, /stated hashes/);
});

test("whole decimals keep one reading in both hashes", async () => {
  const made = record("direct_encoding", LN3, [1, 2, 3, 4], { truth: String(ALL / 2n) }, [integer("y", 4)]);
  const decimals = record("direct_encoding", LN3, [1.5, 2, 3, 4], { truth: String(ALL / 2n) }, [integer("y", 4)]);
  await openProtocol(made);
  await openProtocol(decimals);
  await refused({ ...made, fingerprint: decimals.fingerprint }, /stated hashes/);
});

test("unknown names, versions, schemas and parts are refused", async () => {
  const unknown = /unknown|known schema/;
  const names = ["rappor", "", "constructor", "__proto__", null, ["direct_encoding"], undefined];
  for (const name of names) await refused(direct({ name }), unknown);
  for (const version of [0, 2, "1", null, 1.5, true]) await refused(direct({ version }), unknown);
  await refused(direct({ schema: "cloister.protocol/2" }), unknown);
  await refused(direct({ tag: "respondent 7" }), unknown);
  for (const nothing of [null, undefined, 5, "{}", [], {}]) await refused(nothing, unknown);
});

test("output spaces that do not fit are refused", async () => {
  const fit = integer("y", 4);
  const space = /output space/;
  for (const fields of [
    [],
    [fit, fit],
    [integer("y", 5)],
    [{ ...fit, low: -1 }],
    [{ ...fit, high: "3" }],
    [{ ...fit, name: "raw" }],
    [{ name: "bits", kind: "bits", length: 4 }],
    [null],
    "y",
  ]) {
    await refused(direct({ output_space: { fields } }), space);
  }
  for (const output_space of [null, [], { fields: null }, "y"]) await refused(direct({ output_space }), space);
});

test("malformed parameters are refused", async () => {
  const truth = String(ALL / 2n);
  for (const params of [null, 5, [], {}, { truth, more: 1 }, { Truth: truth }, "truth"]) {
    await refused(direct({ params }), /parameters are not those/);
  }
  for (const wrong of [0.5, "0.5", "-1", String(ALL + 1n), null, 2 ** 60, true, "1e3", ["1"]]) {
    await refused(direct({ params: { truth: wrong } }), /not an integer|out of range/);
  }
  const hadamard = (order, size = 3) =>
    record("hadamard_response", LN3, ["a", "b", "c", "d"].slice(0, size), { order, truth: String(3n * quarter) }, [
      integer("y", order),
    ]);
  await refused(hadamard(5), /power of two/);
  await refused(hadamard(2), /out of range/);
  await refused(hadamard(4, 4), /out of range/);
  const fields = [integer("y", 2)];
  const half = String(ALL / 2n);
  for (const rows of [null, [[half]], [[half], [half, half]], [[half], half], [[half], [half], [half]]]) {
    await refused(record("pram", "1", ["a", "b"], { rows }, fields), /does not fit the domain/);
  }
  const falling = {
    rows: [
      [half, String(quarter)],
      [half, half],
      [half, half],
    ],
  };
  await refused(record("pram", "1", ["a", "b", "c"], falling, [integer("y", 3)]), /out of range/);
  await refused(
    record("duchi", "1", { bounds: ["0", "1"] }, { steps: 8, low: half, high: String(quarter) }, fields),
    /wrong order/,
  );
  await refused(
    record("duchi", "1", { bounds: ["0", "1"] }, { steps: 0, low: half, high: half }, fields),
    /out of range/,
  );
  await refused(record("randomized_response", "1", ["a", "b", "c"], { truth: half }, [integer("y", 3)]), /two answers/);
  await refused(record("unary_set", "1", ["a", "b"], { keep: half, flip: half, most: 3 }, fields), /out of range/);
  await refused(
    record("piecewise", "1", { bounds: ["0", "1"] }, { steps: String(2n ** 62n), window: 1, truth: half }, fields),
    /too wide/,
  );
});

test("domains and bounds must be usable", async () => {
  const list = /not a list of at least two answers/;
  for (const domain of [null, [], ["a"], "ab", { length: 2 }, ["a", null], ["a", ["b"]], [1, 2 ** 53]]) {
    await refused({ ...direct(), domain }, list);
  }
  await refused({ ...direct(), domain: ["a", "b", "a", "c"] }, /twice/);
  await refused({ ...direct(), bounds: ["0", "1"] }, /domain and no bounds/);
  const duchi = record(
    "duchi",
    LN3,
    { bounds: ["0", "1"] },
    { steps: 8, low: String(quarter), high: String(3n * quarter) },
    [integer("y", 2)],
  );
  await openProtocol(duchi);
  await refused({ ...duchi, domain: ["a", "b"] }, /bounds and no domain/);
  for (const bounds of [null, ["0"], [0, 1], ["1", "1"], ["2", "1"], ["0", "x"], ["0", "1", "2"]]) {
    await refused({ ...duchi, bounds }, /bounds|bound is not/i);
  }
});

test("epsilon must be a usable text", async () => {
  for (const epsilon of [1, null, "", "0", "-1", "20.0001", "inf", "NaN", "1e400", undefined]) {
    await refused(direct({ epsilon }), /Epsilon/);
  }
});

test("a page that cannot check the hashes refuses", async () => {
  const { getRandomValues } = globalThis.crypto;
  for (const value of [undefined, { getRandomValues }, { subtle: {} }]) {
    Object.defineProperty(globalThis, "crypto", { value, configurable: true });
    await refused(direct(), /secure connection.*https/);
  }
});
