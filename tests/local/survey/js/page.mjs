// Fills in the form of the survey page in the how-to, and returns what the page shows and what it sent.
export default async function fill({ fields }) {
  document.body.innerHTML = '<form id="survey"></form><p id="total"></p><pre id="sent"></pre>';
  const form = document.querySelector("#survey");
  for (const [name, value] of Object.entries(fields)) {
    const field = document.createElement("input");
    Object.assign(field, { name, value });
    form.append(field);
  }
  const fetched = globalThis.fetch;
  const sent = new Promise((resolve) => {
    globalThis.fetch = async (address, options) =>
      options ? resolve({ address, ...options }) : fetched(`/page/${address}`);
  });
  await import("/page/questions.js");
  form.dispatchEvent(new Event("change"));
  form.requestSubmit();
  const { address, method, body } = await sent;
  const [total, shown] = ["#total", "#sent"].map((place) => document.querySelector(place).textContent);
  return { address, method, body, total, shown };
}
