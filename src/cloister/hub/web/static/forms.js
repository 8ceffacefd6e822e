// Forms that call the JSON API: <form data-api="POST /api/v1/datasets" data-next="/datasets/{id}">.
// Fields become a JSON object by their names ("a.b" nests); data-type says number, boolean, list, json or pairs (lines
// "name = value"). Empty fields are left out unless they have data-keep; checkboxes of type list give the list of the
// checked values. A GET sends them in its address. What is shown only once, such as a new token, goes into the form's
// [data-result], whose [data-shown="name"] are filled from the answer.

const cookie = (name) =>
  document.cookie.split("; ").find((part) => part.startsWith(name + "="))?.slice(name.length + 1) ?? "";

export const callApi = async (method, path, body, headers = {}) => {
  const isBlob = body instanceof Blob;
  const response = await fetch(path, {
    method,
    headers: {
      "X-CSRF-Token": cookie("cloister_csrf"),
      ...(body === undefined || isBlob ? {} : { "Content-Type": "application/json" }),
      ...headers,
    },
    body: body === undefined ? undefined : isBlob ? body : JSON.stringify(body),
    credentials: "same-origin",
  });
  const text = await response.text();
  const found = text ? JSON.parse(text) : {};
  if (!response.ok) throw Object.assign(new Error(found.problem ?? "The hub does not answer."), found, { status: response.status });
  return found;
};

const parsed = (field) => {
  try {
    return JSON.parse(field.value);
  } catch {
    const problem = `“${field.labels?.[0]?.textContent.trim() ?? field.name}” is not valid JSON.`;
    throw Object.assign(new Error(problem), { problem, fix: 'write for example {"features": ["age"]}.' });
  }
};

const typed = (field) => {
  if (field.type === "checkbox") return field.checked;
  if (field.value === "" && !field.required && !("keep" in field.dataset)) return undefined;
  switch (field.dataset.type) {
    case "number": return Number(field.value);
    case "boolean": return field.value === "true";
    case "list": return field.value.split(/,(?![^(]*\))/).map((part) => part.trim()).filter(Boolean);
    case "json": return parsed(field);
    case "pairs":
      return Object.fromEntries(
        field.value.split("\n").filter((line) => line.trim()).map((line) => {
          const [name, ...rest] = line.split("=");
          return [name.trim(), rest.join("=").trim()];
        }),
      );
    default: return field.value;
  }
};

export const valuesOf = (form) => {
  const values = {};
  for (const field of form.elements) {
    if (!field.name || field.disabled || (field.type === "radio" && !field.checked)) continue;
    const isChoice = field.type === "checkbox" && field.dataset.type === "list";
    const value = isChoice ? [] : typed(field);
    if (value === undefined) continue;
    const parts = field.name.split(".");
    const last = parts.pop();
    let place = values;
    for (const part of parts) place = place[part] ??= {};
    if (!isChoice) place[last] = value;
    else (place[last] ??= []).push(...(field.checked ? [field.value] : []));
  }
  return values;
};

// What is wrong, and what to do about it: fixes begin in small letters, since they follow a word.
export const told = (problem, fix) => (problem && fix ? `${problem} What to do: ${fix}` : problem || fix || "");

export const say = (form, problem, fix) => {
  let place = form.querySelector("[data-message]");
  if (!place) {
    place = document.createElement("p");
    place.dataset.message = "";
    place.setAttribute("role", "alert");
    form.append(place);
  }
  place.textContent = told(problem, fix);
  if (problem) place.scrollIntoView({ block: "nearest" });
};

export const sayError = (form, error) => say(form, error.problem ?? "The hub does not answer.", error.fix ?? "try again in a while.");

// <div data-only="unit" data-unless="row">: shown, and sent, only while the field "unit" has another value.
for (const part of document.querySelectorAll("[data-only]")) {
  const ruler = document.getElementById(part.dataset.only);
  const follow = () => {
    part.hidden = ruler.value === part.dataset.unless;
    for (const field of part.querySelectorAll("input, select, textarea")) field.disabled = part.hidden;
  };
  ruler.addEventListener("change", follow);
  follow();
}

const show = (result, found) => {
  for (const place of result.querySelectorAll("[data-shown]")) {
    const value = found[place.dataset.shown];
    if (place instanceof HTMLImageElement) place.src = value;
    else place.textContent = Array.isArray(value) ? value.join("\n") : String(value ?? "");
  }
  result.hidden = false;
  result.focus();
};

const follow = (pattern, found) =>
  pattern.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(found[name] ?? "")));

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.dataset.api) return;
  event.preventDefault();
  const [method, path] = form.dataset.api.split(" ");
  const buttons = [...form.querySelectorAll("button")];
  buttons.forEach((button) => (button.disabled = true));
  say(form, "", "");
  try {
    const values = valuesOf(form);
    const query = new URLSearchParams(method === "GET" ? Object.entries(values).map(([name, value]) => [name, String(value)]) : []);
    const found = await callApi(method, query.size ? `${path}?${query}` : path, method === "GET" ? undefined : values);
    const next = form.dataset.next;
    const result = form.querySelector("[data-result]");
    if (result) show(result, found);
    else if (next) location.assign(follow(next, found));
    else location.reload();
  } catch (error) {
    sayError(form, error);
    buttons.forEach((button) => (button.disabled = false));
  }
});
