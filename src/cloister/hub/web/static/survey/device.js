// What stays on this device: which surveys were answered and when, the reports that were sent, and what waits to be sent.
//
// No answer is ever kept, nor a report before "Send" is pressed, nor a seed of the noise: whoever has a seed and the
// report can try all answers. A report that was sent tells no more here than it tells the hub, which has it.

import { sha256 } from "./local/hashes.js";

const PREFIX = "cloister/";

const kept = (() => {
  try {
    localStorage.setItem(`${PREFIX}works`, "1");
    localStorage.removeItem(`${PREFIX}works`);
    return localStorage;
  } catch {
    const held = new Map();
    return {
      getItem: (name) => held.get(name) ?? null,
      setItem: (name, text) => held.set(name, text),
      removeItem: (name) => held.delete(name),
      key: (place) => [...held.keys()][place] ?? null,
      get length() {
        return held.size;
      },
    };
  }
})();

export const read = (name) => {
  try {
    return JSON.parse(kept.getItem(PREFIX + name));
  } catch {
    return null;
  }
};

export const write = (name, value) => kept.setItem(PREFIX + name, JSON.stringify(value));

export const remove = (name) => kept.removeItem(PREFIX + name);

remove("repeat"); // Older versions of this page kept answers there.

/** Return the names under which reports are kept: of each a hash of its question and protocol, without a word of them. */
export const namesOf = (questions, reports) =>
  Promise.all(
    reports.map(({ question, fingerprint }) => {
      const { text, options, bounds, bins } = questions.find(({ id }) => id === question);
      return sha256(JSON.stringify([text, options, bounds, bins, fingerprint]));
    }),
  );

/** Return for each name what was sent under it from this device, or undefined. */
export const sentUnder = (names) => {
  const sent = read("sent") ?? {};
  return names.map((name) => sent[name]);
};

/** Keep what is sent now, so that the same question at the same level gets the same report again. */
export const keepSent = (names, reports) =>
  write("sent", { ...(read("sent") ?? {}), ...Object.fromEntries(names.map((name, place) => [name, reports[place].y])) });

export const history = () => read("history") ?? [];

export const remember = (entry) => write("history", [...history(), entry]);

/** Delete everything that this site keeps on the device. */
export const forget = async () => {
  const names = Array.from({ length: kept.length }, (_, place) => kept.key(place));
  names.filter((name) => name?.startsWith(PREFIX)).forEach((name) => kept.removeItem(name));
  if (globalThis.caches) await caches.delete("cloister-survey");
  const workers = (await navigator.serviceWorker?.getRegistrations()) ?? [];
  await Promise.all(workers.filter(({ scope }) => new URL(scope).pathname.startsWith("/s/")).map((one) => one.unregister()));
};
