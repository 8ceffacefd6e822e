// Compares this client with Python's devices on vectors that the Python tests write.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { PROTOCOLS } from "./client.mjs";
import replay from "./replay.mjs";

const path = process.env.CLOISTER_VECTORS;

test("reports are those of the Python devices, and take as many words", { skip: !path && "no vectors" }, async () => {
  const cases = JSON.parse(readFileSync(path, "utf8"));
  const { compared, differences } = await replay(cases);
  assert.deepEqual(differences, []);
  assert.ok(compared > 1000, `only ${compared} reports were compared`);
  assert.deepEqual(new Set(cases.map(({ record }) => record.name)), new Set(PROTOCOLS));
});
