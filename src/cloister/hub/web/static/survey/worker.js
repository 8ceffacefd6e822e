// Keeps the survey usable without a connection: fresh files where there is a line, kept ones where there is none.
// It never sends anything by itself and never touches what is sent.

const STORE = "cloister-survey";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

const freshOrKept = async (request) => {
  const store = await caches.open(STORE);
  try {
    const fresh = await fetch(request);
    if (fresh.ok && (await store.match(request.url))) await store.put(request.url, fresh.clone());
    return fresh;
  } catch (problem) {
    const kept = await store.match(request.url);
    if (kept) return kept;
    throw problem;
  }
};

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method === "GET" && new URL(request.url).origin === self.location.origin) {
    event.respondWith(freshOrKept(request));
  }
});
