// After the first load the page works without a connection.

/** Keep the page, its data and its code on the device, if the browser can. */
export const keepForOffline = async (address, code) => {
  if (!navigator.serviceWorker || !globalThis.caches) return false;
  try {
    await navigator.serviceWorker.register(`/s/${address}/worker.js`, { scope: `/s/${address}` });
    const files = code.files.filter((name) => name !== "worker.js").map((name) => `/survey-code/${code.hash}/${name}`);
    const store = await caches.open("cloister-survey");
    await store.addAll([`/s/${address}`, `/api/v1/surveys/${address}/page`, ...files]);
    return true;
  } catch {
    return false;
  }
};
