// The editor of a schema: one fieldset per column. What a person changes is no guess any more.
import { callApi, say, sayError } from "./forms.js";

const form = document.querySelector("form[data-columns]");
const columns = [...form.querySelectorAll("[data-column]")];
const BOUNDED = ["numeric", "datetime"];
const LISTED = ["nominal", "ordinal"];

const field = (column, fact) => column.querySelector(`[data-fact="${fact}"]`);
const ends = (column) => [...column.querySelectorAll("[data-end]")];
const isShown = (column, fact) => !column.querySelector(`[data-for="${fact}"]`).hidden;

const follow = (column) => {
  const kind = field(column, "kind").value;
  const isName = field(column, "role").value === "identifier";
  for (const [fact, kinds] of [["bounds", BOUNDED], ["categories", LISTED]]) {
    column.querySelector(`[data-for="${fact}"]`).hidden = isName || !kinds.includes(kind);
  }
  for (const end of ends(column)) {
    const storage = field(column, "storage").value;
    end.type = kind === "datetime" ? (storage === "timestamp" ? "datetime-local" : "date") : "text";
    end.inputMode = kind === "datetime" ? "" : "decimal";
  }
};

const typed = (text, stored) => {
  if (stored === "boolean") return text === "true" ? true : text === "false" ? false : text;
  return ["integer", "real"].includes(stored) && text !== "" && !isNaN(text) ? Number(text) : text;
};

const bound = (end, kind) => {
  const text = end.value.trim();
  return kind === "numeric" && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
};

const factsOf = (column) => {
  const facts = { ...JSON.parse(column.dataset.facts) };
  const guessed = [...column.querySelectorAll("[data-guess]:not([hidden])")].map((mark) => mark.dataset.guess);
  for (const fact of ["role", "kind", "storage"]) facts[fact] = field(column, fact).value;
  facts.subject = field(column, "subject").checked || undefined;
  const given = ends(column).filter((end) => end.value.trim() !== "");
  facts.bounds = isShown(column, "bounds") && given.length ? ends(column).map((end) => bound(end, facts.kind)) : undefined;
  const lines = field(column, "categories").value.split("\n").map((line) => line.trim()).filter(Boolean);
  facts.categories = isShown(column, "categories") && lines.length ? lines.map((line) => typed(line, facts.storage)) : undefined;
  facts.guessed = guessed.filter((fact) => facts[fact] !== undefined);
  if (!facts.guessed.length) [facts.guessed, facts.evidence] = [undefined, undefined];
  return facts;
};

const count = () => {
  const left = columns.filter((column) => column.querySelector("[data-guess]:not([hidden])")).length;
  form.querySelector("[data-left]").textContent =
    left === 0 ? "No guesses are left." : `${left} of ${columns.length} columns still have guesses. Confirming takes them as they are.`;
};

const blame = (problem) => {
  const name = /Column "(.+?)"/.exec(problem ?? "")?.[1];
  for (const column of columns) column.classList.toggle("wrong", column.dataset.column === name);
  columns.find((column) => column.dataset.column === name)?.querySelector("select, input").focus();
};

for (const column of columns) {
  follow(column);
  column.addEventListener("input", (event) => {
    const fact = event.target.dataset.fact;
    for (const mark of column.querySelectorAll(`[data-guess="${fact}"]`)) mark.hidden = true;
    if (fact === "subject" && event.target.checked) {
      columns.filter((other) => other !== column).forEach((other) => (field(other, "subject").checked = false));
    }
    follow(column);
    count();
  });
}
count();

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const confirm = "confirm" in (event.submitter?.dataset ?? {});
  const checked = form.querySelector("#checked");
  say(form, "", "");
  blame("");
  if (confirm && !checked.checked) {
    checked.focus();
    return say(form, "Tick that you have checked every column.", "Or save for later.");
  }
  const buttons = [...form.querySelectorAll("button")];
  buttons.forEach((button) => (button.disabled = true));
  try {
    const document = { columns: Object.fromEntries(columns.map((column) => [column.dataset.column, factsOf(column)])) };
    await callApi("PUT", form.dataset.columns, { document, confirm });
    location.assign(form.dataset.next);
  } catch (error) {
    sayError(form, error);
    blame(error.problem);
    buttons.forEach((button) => (button.disabled = false));
  }
});
