// Records with the right hashes, written apart from the client.
import { createHash } from "node:crypto";

export const LN3 = "1.0986122886681098"; // just above ln 3
export const ALL = 2n ** 64n;

const sha256 = (text) => createHash("sha256").update(text, "utf8").digest("hex");

const sorted = (value) => {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, part]) => [key, sorted(part)])
      .sort(),
  );
};

const tag = (value) => {
  if (typeof value === "string") return `s:${value}`;
  return typeof value === "boolean" ? `b:${value}` : `${Number.isInteger(value) ? "i" : "n"}:${value}`;
};

export function sealed(record) {
  const { fingerprint, domain_hash, ...rest } = record;
  const texts = rest.domain ? rest.domain.map(tag) : rest.bounds.map((bound) => `n:${bound}`);
  return fingerprinted({ ...rest, domain_hash: sha256(JSON.stringify(texts)) });
}

export function fingerprinted({ fingerprint, ...rest }) {
  return { ...rest, fingerprint: sha256(JSON.stringify(sorted(rest))) };
}

export const integer = (name, size) => ({ name, kind: "integer", low: 0, high: size - 1 });

export function record(name, epsilon, domain, params, fields) {
  const place = Array.isArray(domain) ? { domain } : domain;
  const head = { schema: "cloister.protocol/1", name, version: 1, epsilon, ...place, options: {} };
  return sealed({ ...head, params, output_space: { fields } });
}

export function direct(changes = {}) {
  const domain = ["a", "b", "c", "d"];
  const made = record("direct_encoding", LN3, domain, { truth: String(ALL / 2n) }, [integer("y", 4)]);
  return sealed({ ...made, ...changes });
}
