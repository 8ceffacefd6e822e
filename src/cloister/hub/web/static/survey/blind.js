// Blind signatures in the browser (RFC 9474, RSABSSA-SHA384-PSS-Randomized): the hub signs what it cannot see.

const HASH = 48;
const SALT = 48;
const PREFIX = 32;
const EXPONENT = 65537n;
const LEAST_BITS = 2048;

export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

const toInteger = (bytes) => BigInt(`0x${toHex(bytes) || "0"}`);

const toBytes = (value, size) => fromHex(value.toString(16).padStart(2 * size, "0"));

const joined = (...parts) => {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  parts.reduce((place, part) => (all.set(part, place), place + part.length), 0);
  return all;
};

const random = (count) => crypto.getRandomValues(new Uint8Array(count));

const hash = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-384", bytes));

const power = (base, exponent, modulus) => {
  let [result, factor] = [1n, base % modulus];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * factor) % modulus;
    factor = (factor * factor) % modulus;
  }
  return result;
};

const inverse = (value, modulus) => {
  let [a, b, x, y] = [modulus, value % modulus, 0n, 1n];
  while (b !== 0n) {
    const quotient = a / b;
    [a, b] = [b, a - quotient * b];
    [x, y] = [y, x - quotient * y];
  }
  if (a !== 1n) throw new Error("This is no key for signatures.");
  return ((x % modulus) + modulus) % modulus;
};

const mask = async (seed, size) => {
  const parts = [];
  for (let counter = 0; counter * HASH < size; counter += 1) {
    parts.push(await hash(joined(seed, toBytes(BigInt(counter), 4))));
  }
  return joined(...parts).slice(0, size);
};

const encode = async (message, bits, salt) => {
  const size = Math.ceil(bits / 8);
  const digest = await hash(joined(new Uint8Array(8), await hash(message), salt));
  const block = joined(new Uint8Array(size - salt.length - HASH - 2), Uint8Array.of(1), salt);
  const masks = await mask(digest, block.length);
  const masked = block.map((byte, place) => byte ^ masks[place]);
  masked[0] &= 0xff >> (8 * size - bits);
  return joined(masked, digest, Uint8Array.of(0xbc));
};

/** Return a checked key from what the hub publishes: its numbers, and the fingerprint that everybody must see alike. */
export const openKey = async ({ modulus, exponent }) => {
  const [n, e] = [BigInt(`0x${modulus}`), BigInt(`0x${exponent}`)];
  const bits = n.toString(2).length;
  if (bits < LEAST_BITS || e !== EXPONENT || n % 2n === 0n) throw new Error("This is no key for signatures.");
  const text = `cloister.blind_key/1\n${n.toString(16)}\n${e.toString(16)}`;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return { n, e, bits, size: Math.ceil(bits / 8), fingerprint: toHex(new Uint8Array(digest)) };
};

/** Return a request with given randomness: for comparisons only. */
export const blindWith = async (key, prepared, salt, factor) => {
  const encoded = toInteger(await encode(prepared, key.bits - 1, salt));
  inverse(encoded, key.n);
  const hidden = (encoded * power(factor, key.e, key.n)) % key.n;
  return {
    message: toHex(prepared),
    blinded: toHex(toBytes(hidden, key.size)),
    inverse: inverse(factor, key.n).toString(16),
  };
};

/** Return a request for the signature of a random message, with what undoes the blinding. */
export const blind = (key) => {
  const factor = 1n + (toInteger(random(key.size + 16)) % (key.n - 1n));
  return blindWith(key, joined(random(PREFIX), random(32)), random(SALT), factor);
};

/** Return the signature of the request's message; a hub that did not sign it is refused. */
export const finish = async (key, request, blindSignature) => {
  const signed = (BigInt(`0x${blindSignature}`) * BigInt(`0x${request.inverse}`)) % key.n;
  const signature = toBytes(signed, key.size);
  const text = (value, size) =>
    btoa(String.fromCharCode(...toBytes(value, size))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  const known = await crypto.subtle.importKey(
    "jwk",
    { kty: "RSA", n: text(key.n, key.size), e: text(key.e, 3), ext: true },
    { name: "RSA-PSS", hash: "SHA-384" },
    false,
    ["verify"],
  );
  const holds = await crypto.subtle.verify({ name: "RSA-PSS", saltLength: SALT }, known, signature, fromHex(request.message));
  if (!holds) throw new Error("The hub did not sign the invitation.");
  return toHex(signature);
};
