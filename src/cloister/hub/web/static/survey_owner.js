// A survey's own page: invitations that are shown once, questions before things that cannot be undone, fresh estimates.

import { callApi, say } from "./forms.js";

const facts = document.querySelector("[data-survey]");
const survey = facts.dataset.survey;

document.addEventListener(
  "submit",
  (event) => {
    const question = event.target.dataset.confirm;
    if (question && !confirm(question)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  },
  true,
);

document.querySelector("#invite")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  try {
    const { items } = await callApi("POST", `/api/v1/surveys/${survey}/tokens`, { count: Number(form.elements.count.value) });
    const text = `${items.join("\n")}\n`;
    form.querySelector("#made").value = text;
    form.querySelector("#save").href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    form.querySelector("#links").hidden = false;
    form.querySelector("#made").focus();
  } catch (error) {
    say(form, error.problem ?? error.message, error.fix);
  }
});

const refresh = async () => {
  const found = await callApi("GET", `/api/v1/surveys/${survey}/estimates`).catch(() => null);
  if (found && String(found.submissions ?? 0) !== facts.dataset.estimated) location.reload();
};

if (facts.dataset.state === "open") setInterval(refresh, 20_000);
