// Running a service: the price and the error are shown before anything is paid.
import { questionOf, startBuilder } from "./builder.js";
import { callApi, say, sayError, valuesOf } from "./forms.js";
import { line, previewOf } from "./preview.js";

const form = document.querySelector("form[data-service]");
const place = document.querySelector("[data-shown]");

// <fieldset data-list="diversity"> holds rows; a row counts once its [data-needed] part is filled in.
const listsOf = () =>
  Object.fromEntries(
    [...form.querySelectorAll("[data-list]")].map((list) => [
      list.dataset.list,
      [...list.querySelectorAll("[data-row]")]
        .filter((row) => row.querySelector("[data-needed]").value.trim() !== "")
        .map((row) =>
          Object.fromEntries(
            [...row.querySelectorAll("[data-part]")]
              .filter((part) => part.value.trim() !== "")
              .map((part) => [part.dataset.part, part.value]),
          ),
        ),
    ]),
  );

const parametersOf = () => {
  const parameters = { ...valuesOf(form), ...listsOf() };
  return form.querySelector("[data-rows]") ? { ...parameters, question: questionOf(form) } : parameters;
};

const asked = () => ({ parameters: parametersOf(), purpose: form.querySelector("[data-purpose]").value });

let latest = 0;
const preview = async () => {
  const mine = ++latest;
  place.setAttribute("aria-busy", "true");
  try {
    const found = await callApi("POST", `${form.dataset.service}/preview`, asked());
    if (mine !== latest) return;
    place.replaceChildren(...previewOf(found));
    say(form, "", "");
  } catch (error) {
    if (mine !== latest) return;
    const told = [line("p", error.problem ?? "The hub does not answer.", "notice attention")];
    if (error.fix) told.push(line("p", `What to do: ${error.fix}`, "small"));
    place.replaceChildren(...told);
  }
  place.removeAttribute("aria-busy");
};

let waiting = 0;
let key = crypto.randomUUID();
const changed = () => {
  key = crypto.randomUUID();
  clearTimeout(waiting);
  if (form.checkValidity()) waiting = setTimeout(preview, 400);
};

const price = form.querySelector("#epsilon");
const pressed = () => {
  for (const level of form.querySelectorAll("[data-level]")) {
    level.setAttribute("aria-pressed", String(level.dataset.level === price.value.trim()));
  }
};

form.addEventListener("input", (event) => {
  if (event.target === price) pressed();
  changed();
});
form.addEventListener("click", (event) => {
  const level = event.target.closest("[data-level]");
  const example = event.target.closest("[data-example]");
  if (level) price.value = level.dataset.level;
  if (example) form.querySelector("#sql").value = example.dataset.example;
  if (!level && !example) return;
  if (level) pressed();
  changed();
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) preview();
});
form.querySelector("[data-preview]").addEventListener("click", () => form.reportValidity() && preview());

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button:not([type=button])");
  button.disabled = true;
  say(form, "", "");
  try {
    const job = await callApi("POST", `${form.dataset.service}/runs`, asked(), { "Idempotency-Key": key });
    location.assign(`/jobs/${encodeURIComponent(job.id)}`);
  } catch (error) {
    sayError(form, error);
    button.disabled = false;
  }
});

startBuilder(form, changed);
changed();
