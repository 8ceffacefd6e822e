// The forms of a policy: each gathers what it shows and sends it as a change of the version that was looked at.
import { callApi, say } from "./forms.js";

const page = document.querySelector("[data-policy]");
const place = page.dataset.policy;
const basedOn = Number(page.dataset.version);

const checked = (form, name) => [...form.querySelectorAll(`[name="${name}"]:checked`)].map((box) => box.value);
const words = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

const usesOf = (row) => [...row.querySelectorAll("[data-use]:checked")].map((box) => box.dataset.use);

const limitsOf = (form) => {
  const limits = {};
  for (const field of form.querySelectorAll("[data-limit]")) {
    const epsilon = field.value.trim();
    if (epsilon) limits[field.dataset.limit] = { epsilon, delta: field.dataset.delta || "0" };
  }
  return limits;
};

const changes = {
  general: (form) => ({
    discoverable: form.elements.discoverable.checked,
    two_person: form.elements.two_person.checked,
    purposes: [...checked(form, "purposes"), ...words(form.elements.other_purposes.value)],
    rows: form.elements.rows.value,
  }),
  columns: (form) => ({
    columns: Object.fromEntries(
      [...form.querySelectorAll("[data-column]")].map((row) => [row.dataset.column, usesOf(row)]),
    ),
    other_columns: usesOf(form.querySelector("[data-others]")),
  }),
  role: (form) => ({
    roles: [
      {
        name: form.dataset.role ?? form.elements.name.value.trim(),
        operations: checked(form, "operations"),
        limits: limitsOf(form),
        rows: form.elements.rows.value,
      },
    ],
  }),
  rows: (form) => ({ roles: [{ name: form.dataset.role, rows: form.elements.rows.value }] }),
  remove: (form) => ({ roles: [{ name: form.dataset.role, remove: true }] }),
};

const send = async (form) => {
  const kind = form.dataset.change;
  if (kind === "document") {
    return callApi("PUT", place, { based_on: basedOn, text: form.elements.text.value });
  }
  if (kind === "restore") {
    const { document: found } = await callApi("GET", `${place}/versions/${form.dataset.number}`);
    delete found.version;
    return callApi("PUT", place, { based_on: basedOn, policy: found });
  }
  if (kind === "template") {
    return callApi("POST", `${place}/template`, { based_on: basedOn, template: form.elements.template.value });
  }
  return callApi("PATCH", place, { based_on: basedOn, ...changes[kind](form) });
};

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.dataset.change) return;
  event.preventDefault();
  const buttons = [...form.querySelectorAll("button")];
  buttons.forEach((button) => (button.disabled = true));
  try {
    await send(form);
    location.reload();
  } catch (error) {
    say(form, error.problem ?? error.message, error.fix);
    buttons.forEach((button) => (button.disabled = false));
  }
});

// A column that may be used is visible, and one that is not visible is not used.
document.addEventListener("change", (event) => {
  const box = event.target;
  const row = box.closest("[data-column], [data-others]");
  if (!row || !box.dataset.use) return;
  const visible = row.querySelector('[data-use="visible"]');
  if (box === visible && !box.checked) row.querySelectorAll("[data-use]").forEach((other) => (other.checked = false));
  else if (box.checked) visible.checked = true;
});
