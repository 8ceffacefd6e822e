// Questions put together from parts: rows are added and removed, and each column offers what fits it.

const rowsIn = (list) => [...list.querySelectorAll(":scope > [data-row]")];

const follow = (row) => {
  const column = row.querySelector('[data-part="column"]');
  const needsNone = row.querySelector('[data-part="kind"]').value === "count";
  [column.hidden, column.disabled] = [needsNone, needsNone];
};

const fill = (list, row) => {
  const name = row.querySelector('[data-part="column"]').value;
  const source = [...list.querySelectorAll("template[data-filter]")].find((item) => item.dataset.filter === name);
  row.querySelector("[data-rest]").replaceChildren(source.content.cloneNode(true));
};

const tidy = (list) => {
  const rows = rowsIn(list);
  const isMeasures = list.dataset.rows === "measures";
  for (const row of rows) row.querySelector("[data-less]").hidden = isMeasures && rows.length === 1;
  const none = list.querySelector("[data-none]");
  if (none) none.hidden = rows.length > 0;
};

const add = (list) => {
  const more = list.querySelector("[data-more]");
  const template = list.querySelector("[data-template]");
  const row = template ? template.content.firstElementChild.cloneNode(true) : rowsIn(list)[0].cloneNode(true);
  more.before(row);
  if (template) fill(list, row);
  else follow(row);
  tidy(list);
  return row;
};

const set = (row, part, value) => {
  const place = row.querySelector(`[data-part="${part}"]`);
  if (place && value !== undefined && value !== null) place.value = String(value);
};

const valueOf = (part) => {
  const type = part.dataset.type ?? part.selectedOptions?.[0]?.dataset.type ?? "text";
  if (type === "boolean") return part.value === "true";
  return type === "number" && part.value !== "" ? Number(part.value) : part.value;
};

export const questionOf = (form) => {
  const rows = (name) =>
    [...form.querySelectorAll(`[data-rows="${name}"] > [data-row]`)].map((row) =>
      Object.fromEntries(
        [...row.querySelectorAll("[data-part]")].filter((part) => !part.disabled).map((part) => [part.dataset.part, valueOf(part)]),
      ),
    );
  const groups = [...form.querySelectorAll("[data-group]:checked")].map((box) => box.value);
  return { measures: rows("measures"), groups, conditions: rows("conditions").filter((row) => row.value !== "") };
};

const restore = (form, question) => {
  const fields = { measures: ["kind", "column"], conditions: ["column", "comparison", "value"] };
  for (const [name, parts] of Object.entries(fields)) {
    const list = form.querySelector(`[data-rows="${name}"]`);
    for (const [place, item] of (question[name] ?? []).entries()) {
      const row = name === "measures" && place === 0 ? rowsIn(list)[0] : add(list);
      for (const part of parts) {
        set(row, part, item[part]);
        if (part === "column" && name === "conditions") fill(list, row);
        if (part === "kind") follow(row);
      }
    }
  }
  for (const box of form.querySelectorAll("[data-group]")) box.checked = (question.groups ?? []).includes(box.value);
};

export const startBuilder = (form, changed) => {
  for (const list of form.querySelectorAll("[data-rows]")) {
    rowsIn(list).forEach(follow);
    tidy(list);
    list.querySelector("[data-more]").addEventListener("click", () => {
      add(list).querySelector("select").focus();
      changed();
    });
    list.addEventListener("click", (event) => {
      const less = event.target.closest("[data-less]");
      if (!less) return;
      less.closest("[data-row]").remove();
      tidy(list);
      list.querySelector("[data-more]").focus();
      changed();
    });
    list.addEventListener("change", (event) => {
      const row = event.target.closest("[data-row]");
      if (event.target.dataset.part === "kind") follow(row);
      if (event.target.dataset.part === "column" && list.dataset.rows === "conditions") fill(list, row);
      changed();
    });
  }
  const before = form.querySelector("[data-question]")?.dataset.question;
  if (before) restore(form, JSON.parse(before));
};
