// Everything that leaves the device: the exchange of an invitation, and a submission. Nothing else is ever sent.

import { blind, finish, openKey } from "./blind.js";
import { read, remove, write } from "./device.js";

/** The hub answered, and the answer is no. */
export class Refused extends Error {}

const post = async (address, what, body) => {
  const response = await fetch(`/api/v1/surveys/${address}/${what}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    credentials: "omit",
    cache: "no-store",
    referrerPolicy: "no-referrer",
  });
  const found = await response.json();
  if (response.ok) return found;
  const words = [found.problem, found.fix].filter(Boolean).join(" ");
  throw response.status >= 500 || response.status === 429 ? new Error(words) : new Refused(words);
};

/** Take the token out of the address bar and keep it on the device. */
export const takeInvitation = (address) => {
  const token = decodeURIComponent(location.hash.slice(1));
  if (token === "") return;
  history.replaceState(null, "", location.pathname);
  if (read(`admission/${address}`)?.token !== token) write(`admission/${address}`, { token });
};

export const isInvited = (page, terms) => terms.admission === "everybody" || read(`admission/${page.address}`) !== null;

/**
 * Return what admits this person: nothing, a token, or a message with its signature. In the last case the hub is asked
 * for the signature now, apart from the answer; what undoes the blinding is deleted as soon as the signature is there.
 * Which of the three, and by which key, is in the terms, which the survey's fingerprint covers.
 */
export const admission = async (page, terms) => {
  const name = `admission/${page.address}`;
  const held = read(name);
  if (terms.admission === "everybody") return {};
  if (held === null) return null;
  if (terms.admission === "links") return { token: held.token };
  if (terms.admission !== "blind") throw new Refused("This page does not know how the survey admits people.");
  if (held.signature) return { message: held.message, signature: held.signature };
  const key = await openKey(page.key);
  if (key.fingerprint !== terms.key) throw new Refused("The key for signatures is not the one that was published with the survey.");
  const request = held.request ?? (await blind(key));
  write(name, { token: held.token, request });
  const { signature } = await post(page.address, "tokens/sign", { token: held.token, blinded: request.blinded });
  const proof = { message: request.message, signature: await finish(key, request, signature) };
  write(name, { token: held.token, ...proof });
  return proof;
};

/** Put a body into the outbox; it stays there until the hub has it. */
export const keepForSending = (address, body, entry) => write(`outbox/${address}`, { body, entry });

export const waiting = (address) => read(`outbox/${address}`);

/** Send what waits and return "counted" or "counted before"; a refusal empties the outbox, a broken line does not. */
export const send = async (address) => {
  try {
    const { state } = await post(address, "submissions", waiting(address).body);
    remove(`outbox/${address}`);
    return state;
  } catch (problem) {
    if (problem instanceof Refused) remove(`outbox/${address}`);
    throw problem;
  }
};
