// The preview of a run, in words: what it would cost, what would be left, and how far its answer may be off.

export const line = (tag, text, name = "") => {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
};

const exact = (value) => {
  const [top, bottom = "1"] = String(value).split("/");
  return Number(top) / Number(bottom);
};

const parts = (budget) => (budget.epsilon !== undefined && budget.epsilon !== null ? ["epsilon", budget.epsilon] : ["rho", budget.rho]);

const short = (value) => String(Number(value.toPrecision(6)));

export const amount = (budget) => {
  const [measure, value] = parts(budget);
  return `${measure} ${short(exact(value))}`;
};

const digits = (value, margin = value) =>
  value.toLocaleString("en", { maximumFractionDigits: Math.max(0, 1 - Math.floor(Math.log10(Math.abs(margin) || 1))) });

const list = (rows) => {
  const made = document.createElement("ul");
  made.append(...rows);
  return made;
};

const priceOf = (found) => {
  const [cost, left] = [exact(parts(found.cost)[1]), found.left ? exact(parts(found.left)[1]) : null];
  const shown = [line("p", `It costs ${amount(found.cost)}.`, "figure")];
  if (left === null) return shown;
  if (!found.is_affordable) {
    shown.push(line("p", `You have ${amount(found.left)} left, which is too little. Choose a rougher answer, or ask the owner for more.`, "notice bad"));
    return shown;
  }
  const bar = document.createElement("meter");
  [bar.min, bar.max, bar.value] = [0, 1, left ? cost / left : 1];
  bar.setAttribute("aria-label", "Share of what you have left that this would take");
  shown.push(bar, line("p", `You have ${short(left)} left; afterwards ${short(Math.max(0, left - cost))}.`, "small"));
  return shown;
};

const forecast = (name, items) => {
  const [first] = items;
  if (first.half_width === null) return line("li", `${name}: ${first.note || "the error is not known beforehand"}.`);
  if (first.rows === null) {
    const margin = first.half_width;
    const example = margin < 500 ? 1000 : 10 ** Math.ceil(Math.log10(margin * 4));
    const [low, high] = [Math.max(0, example - margin), example + margin];
    const words = `${name}: off by at most ${digits(margin)}. A true ${digits(example, 1)} would be told as something from ${digits(low, margin)} to ${digits(high, margin)}.`;
    return line("li", words);
  }
  const made = line("li", `${name}: off by at most`);
  made.append(list(items.map((item) => line("li", `${digits(item.half_width)} if it is over ${item.rows.toLocaleString("en")} rows`))));
  return made;
};

const errorOf = (preview) => {
  const names = [...new Set(preview.forecasts.map((item) => item.name))];
  if (!names.length) return [];
  const where = preview.groups === null ? " in each group that is found" : preview.groups > 1 ? ` in each of ${preview.groups.toLocaleString("en")} groups` : "";
  const sure = Number(preview.confidence);
  return [
    line("h3", `How exact${where}`),
    line("p", `With ${sure === 0.95 ? "19 chances in 20" : `${short(100 * sure)}% chance`}:`, "small quiet"),
    list(names.map((name) => forecast(name, preview.forecasts.filter((item) => item.name === name)))),
  ];
};

const fold = (title, ...inside) => {
  const made = document.createElement("details");
  made.append(line("summary", title), ...inside);
  return made;
};

export const previewOf = (found) => {
  const shown = found.cost ? priceOf(found) : [line("p", "It costs nothing.", "figure")];
  if (found.needs_approval) shown.push(line("p", "The owner looks at the result before you get it.", "notice"));
  if (found.preview?.forecasts) shown.push(...errorOf(found.preview));
  else if (found.preview?.text) shown.push(line("p", found.preview.text, "wraps"));
  if (found.promise) {
    const [promise, assumed] = found.promise.split(" This assumes:");
    shown.push(line("h3", "What is promised"), line("p", promise, "small"));
    if (assumed) shown.push(fold("What this assumes", line("p", assumed.trim(), "small")));
  }
  if (found.warnings?.length) shown.push(fold(`Good to know (${found.warnings.length})`, list(found.warnings.map((text) => line("li", text, "small")))));
  if (found.preview?.sql) shown.push(fold("The question in SQL", line("pre", found.preview.sql, "wraps")));
  return shown;
};
