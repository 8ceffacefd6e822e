// The builder of surveys: fields become a survey file, which the hub checks after every change.

import { callApi, say, told } from "./forms.js";

const at = (selector) => document.querySelector(selector);
const form = at("#builder");
const query = new URLSearchParams(location.search);
const source = query.get("from");
const isCopy = query.has("copy");
let file = null;
let count = 0;

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
};

const nameOf = (text, taken = new Set()) => {
  const base = text.toLowerCase().normalize("NFKD").replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 40) || "question";
  let name = base;
  for (let n = 2; taken.has(name); n += 1) name = `${base}-${n}`;
  return name;
};

const field = (label, control, help) => {
  const id = `f${(count += 1)}`;
  control.id = id;
  const parts = [make("label", { for: id }, label)];
  if (help) parts.push(make("p", { class: "help" }, help));
  return make("div", { class: "field" }, ...parts, control);
};

const input = (part, value = "", attributes = {}) => Object.assign(make("input", { "data-part": part, ...attributes }), { value });

// One entry for each fact that a question may have; a kind names its facts in the list of kinds.
const FIELDS = {
  options: (given, { optionsHelp }) => {
    const area = Object.assign(make("textarea", { "data-part": "options" }), { value: (given.options ?? []).join("\n") });
    return [field("Options", area, optionsHelp)];
  },
  most: (given) => [field("How many may be picked", input("most", given.most ?? "", { type: "number", min: 1 }), "Fewer picks protect better.")],
  bounds: (given) => [
    field("Smallest answer", input("low", given.bounds?.[0] ?? "", { inputmode: "decimal" })),
    field("Largest answer", input("high", given.bounds?.[1] ?? "", { inputmode: "decimal" })),
  ],
  bins: (given) => [
    field("Edges of groups, if shares are wanted instead of the mean", input("bins", (given.bins ?? []).join(", ")), "For example 0, 18, 65, 100. Leave it empty for the mean."),
  ],
  whole: (given) => [
    make("label", { class: "choice" }, Object.assign(make("input", { type: "checkbox", "data-part": "whole" }), { checked: given.whole ?? false }), " Whole numbers only"),
  ],
};
const fieldsOf = ({ facts, ...told }, given) => {
  const asked = new Set(facts.split(" "));
  return Object.entries(FIELDS).flatMap(([name, fields]) => (asked.has(name) ? fields(given, told) : []));
};

const add = (kind, given = {}) => {
  const { textContent: words, dataset } = at(`#kind option[value="${kind}"]`);
  const remove = Object.assign(make("button", { type: "button", class: "second" }, "Remove"), {
    onclick: () => {
      box.remove();
      soon();
    },
  });
  const box = make(
    "fieldset",
    { "data-kind": kind },
    make("legend", {}, words.charAt(0).toUpperCase() + words.slice(1)),
    field("Question", input("text", given.text ?? "", { maxlength: 1000 })),
    field("Further words, if needed", input("help", given.help ?? "", { maxlength: 1000 })),
    ...fieldsOf(dataset, { ...JSON.parse(dataset.usual), ...given }),
    remove,
  );
  if (given.id) box.dataset.id = given.id;
  at("#questions").append(box);
  return box;
};

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const numbers = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);
const asOption = (text) => (/^-?\d{1,9}$/.test(text) ? Number(text) : text);

const questionOf = (box, taken) => {
  const part = (name) => box.querySelector(`[data-part="${name}"]`);
  const kind = box.dataset.kind;
  const id = box.dataset.id ?? nameOf(part("text").value, taken);
  taken.add(id);
  const found = { id, kind, text: part("text").value };
  if (part("help").value) found.help = part("help").value;
  if (part("options")) {
    const options = lines(part("options").value);
    found.options = options.every((one) => /^-?\d{1,9}$/.test(one)) ? options.map(asOption) : options;
  }
  if (part("most")) found.most = Number(part("most").value);
  if (part("low")) found.bounds = [part("low").value.trim(), part("high").value.trim()];
  if (part("bins")?.value.trim()) found.bins = numbers(part("bins").value);
  if (part("whole")?.checked) found.whole = true;
  return found;
};

const surveyFile = () => {
  const taken = new Set();
  const levels = at("#skip").checked ? { off: null } : {};
  for (const one of document.querySelectorAll("[data-level]")) {
    if (one.value.trim()) levels[one.dataset.level] = one.value.trim();
  }
  const made = {
    schema: "cloister.survey/1",
    id: nameOf(form.elements.title.value || "survey"),
    title: form.elements.title.value,
    collector: form.elements.collector.value,
    purpose: form.elements.purpose.value,
    levels,
    default_level: at("#preselected").value,
    questions: [...at("#questions").children].map((box) => questionOf(box, taken)),
  };
  if (!made.purpose) delete made.purpose;
  return made;
};

const showFile = (given) => {
  form.elements.title.value = given.title;
  form.elements.collector.value = given.collector;
  form.elements.purpose.value = given.purpose ?? "";
  const levels = given.levels ?? { off: null, low: 4, medium: 1, high: 0.25 };
  for (const one of document.querySelectorAll("[data-level]")) one.value = levels[one.dataset.level] ?? "";
  at("#skip").checked = "off" in levels;
  if (given.default_level) at("#preselected").value = given.default_level;
  at("#questions").replaceChildren();
  given.questions.forEach((one) => add(one.kind, one));
};

const isPlain = (given) => {
  const known = new Set(["off", "low", "medium", "high"]);
  const parts = new Set(["id", "kind", "text", "help", "options", "most", "bounds", "bins", "whole", "pretend"]);
  return Object.keys(given.levels ?? {}).every((name) => known.has(name)) && given.questions.every((one) => Object.keys(one).every((part) => parts.has(part)));
};

const showTold = (found) => {
  const parts = found.questions.map((one) =>
    make("section", {}, make("h3", {}, one.text), make("ul", { class: "small" }, ...one.levels.map((level) => make("li", {}, make("strong", {}, `${level.name}: `), level.statement)))),
  );
  const isSame = found.questions.every((one) => JSON.stringify(one.levels.map(({ statement }) => statement)) === JSON.stringify(found.questions[0].levels.map(({ statement }) => statement)));
  const shown = isSame ? [make("h3", {}, "For every question"), parts[0].lastChild] : parts;
  at("#told").replaceChildren(make("h3", {}, "For all questions together, as preselected"), make("p", {}, found.statement), ...shown);
  const rows = found.plan.rows.map((row) =>
    make("tr", {}, make("td", {}, row.question), make("td", {}, `${row.level}${row.preselected ? " (preselected)" : ""}`), make("td", { class: "number" }, row.respondents.toLocaleString("en-US"))),
  );
  const head = make("tr", {}, ...["Question", "Level", "People"].map((text) => make("th", { scope: "col" }, text)));
  at("#plan").replaceChildren(
    make("p", {}, `If everybody keeps what is preselected, ${found.plan.respondents.toLocaleString("en-US")} people have to take part. “${found.plan.hardest}” takes the most.`),
    make("div", { class: "scrolls" }, make("table", { class: "table small" }, make("thead", {}, head), make("tbody", {}, ...rows))),
  );
};

let timer = 0;
const check = async () => {
  if (at("#questions").children.length === 0) return;
  const wanted = file ?? surveyFile();
  try {
    const found = await callApi("POST", "/api/v1/surveys/check", { document: wanted, margin: Number(at("#margin").value) || 5 });
    showTold(found);
    if (document.activeElement !== at("#file")) at("#file").value = JSON.stringify(found.document, null, 2);
    say(form, "", "");
  } catch (error) {
    at("#told").replaceChildren(make("p", { class: "quiet" }, told(error.problem ?? error.message, error.fix)));
    at("#plan").replaceChildren();
  }
};
const soon = () => {
  clearTimeout(timer);
  timer = setTimeout(check, 400);
};

form.addEventListener("input", () => {
  file = null;
  soon();
});
at("#margin").addEventListener("input", soon);
at("#add").addEventListener("click", () => {
  add(at("#kind").value).querySelector("input").focus();
  soon();
});

at("#load").addEventListener("click", async () => {
  try {
    const found = await callApi("POST", "/api/v1/surveys/check", { document: at("#file").value });
    showFile(found.document);
    file = isPlain(found.document) ? null : found.document;
    at("#file-message").textContent = file ? "This file has parts that the form does not show; they are kept unless you change the form." : "";
    showTold(found);
  } catch (error) {
    at("#file-message").textContent = told(error.problem ?? error.message, error.fix);
  }
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const draft = {
    document: file ?? surveyFile(),
    admission: form.elements.admission.value,
    results_are_public: at("#public").checked,
    least: Number(at("#least").value),
  };
  const isChange = source && !isCopy;
  try {
    const made = await callApi(isChange ? "PUT" : "POST", `/api/v1/surveys${isChange ? `/${source}` : ""}`, draft);
    location.assign(`/surveys/${made.id}`);
  } catch (error) {
    say(form, error.problem ?? error.message, error.fix);
  }
});

if (source) {
  const given = await callApi("GET", `/api/v1/surveys/${encodeURIComponent(source)}`);
  showFile(given.document);
  file = isPlain(given.document) ? null : given.document;
  form.elements.admission.value = given.admission;
  at("#public").checked = given.results_are_public;
  at("#least").value = given.least;
  await check();
} else {
  add("yes_no");
}
