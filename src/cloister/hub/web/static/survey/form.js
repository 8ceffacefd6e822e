// The questions: how much to protect first, then the answer.

import { plainly } from "./chances.js";
import { make } from "./dom.js";
import { KINDS } from "./local/kinds/index.js";

const OFF = "off";

const named = (level) => (level === OFF ? "Skip" : level.charAt(0).toUpperCase() + level.slice(1));

const choice = (type, name, value, text, isChosen, tell) => {
  const id = `${name}-${value}`;
  return make(
    "label",
    { class: "pick", for: id },
    make("input", { type, id, name, value, checked: isChosen, onchange: tell }),
    make("span", {}, text),
  );
};

/** Return the sentences of a level: what happens to the answer, and what it can tell at most. */
const sentences = (question, record, name) => {
  const level = question.levels.find((one) => one.name === name);
  if (name === OFF) return [make("p", {}, level.statement)];
  return [make("p", {}, plainly(record)), make("p", { class: "quiet" }, level.statement)];
};

const levelsOf = (question, records, tell) => {
  const told = make("div", { class: "told", "aria-live": "polite" });
  const show = (name) => told.replaceChildren(...sentences(question, records[name], name));
  show(question.preselected);
  const order = [...question.levels].sort((a, b) => a.epsilon - b.epsilon);
  const picks = order.map(({ name }) =>
    choice("radio", `${question.id}-level`, name, named(name), name === question.preselected, (event) => {
      show(event.target.value);
      tell();
    }),
  );
  return make(
    "fieldset",
    { class: "levels" },
    make("legend", {}, "How much to protect this answer"),
    make("div", { class: "scale" }, picks),
    told,
  );
};

/** Return the fieldset of a question; `tell` is called after every change. */
export const questionOf = (question, records, number, count, tell) => {
  const kind = KINDS.get(question.kind);
  const answer = kind.control(question, { make, choice, tell });
  const help = [question.help, kind.hint(question), question.optional ? "" : "This question must be answered."].filter(Boolean).join(" ");
  const legend = make(
    "legend",
    {},
    make("span", { class: "count" }, `Question ${number} of ${count}`),
    make("span", { class: "asked" }, question.text),
  );
  const group = make("fieldset", { class: "question", "data-question": question.id }, legend);
  const answering = make("div", { class: "answering" }, help ? make("p", { class: "quiet" }, help) : null, answer);
  const levels = levelsOf(question, records, () => {
    answering.hidden = levelOf(group, question) === OFF;
    tell();
  });
  answering.hidden = question.preselected === OFF;
  group.append(levels, answering);
  return group;
};

const levelOf = (group, question) => group.querySelector(`input[name="${question.id}-level"]:checked`).value;

/** Return what is answered, and at which level: questions without an answer are left out. */
export const read = (form, questions) => {
  const [answers, levels] = [{}, {}];
  for (const question of questions) {
    const group = form.querySelector(`[data-question="${question.id}"]`);
    const level = levelOf(group, question);
    const value = level === OFF ? undefined : KINDS.get(question.kind).read(group, question);
    levels[question.id] = value === undefined && question.optional ? OFF : level;
    if (value !== undefined) answers[question.id] = value;
  }
  return { answers, levels };
};

/** Return an answer as people write it. */
export const written = (answer) => (Array.isArray(answer) ? answer.join(", ") : String(answer));
