// What stays on this device, and only here: what was answered and when, reports to repeat, and what waits to be sent.

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

/** Return what a memory of earlier reports does: the same question, level and answer always give the same report. */
export const repeated = (questions, answers, reports) => {
  const memory = read("repeat") ?? {};
  const made = reports.map((report) => {
    const { text, options, bounds, bins } = questions.find(({ id }) => id === report.question);
    const key = JSON.stringify([text, options, bounds, bins, report.fingerprint, answers[report.question]]);
    memory[key] ??= report.y;
    return { ...report, y: memory[key] };
  });
  write("repeat", memory);
  return made;
};

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
