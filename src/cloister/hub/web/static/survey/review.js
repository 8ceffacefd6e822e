// The review: what was answered, what is sent in its place, and the exact text that leaves the device.

import { inWords } from "./chances.js";
import { make } from "./dom.js";
import { written } from "./form.js";

/** Return the section that shows a body before it is sent. */
export const reviewOf = ({ survey, records, answers, levels, body, onsend, onback }) => {
  const rows = survey.questions.map((question) => {
    const report = body.submission.reports.find((one) => one.question === question.id);
    const facts = report
      ? [
          make("dt", {}, "You answered"),
          make("dd", {}, written(answers[question.id])),
          make("dt", {}, `Sent (${report.level} protection)`),
          make("dd", { class: "sent" }, inWords(records[question.id][report.level], report.y)),
        ]
      : [make("dt", {}, "Sent"), make("dd", { class: "sent" }, "nothing: you skip this question")];
    return make("li", { class: "panel" }, make("h3", {}, question.text), make("dl", { class: "facts" }, facts));
  });
  return make(
    "section",
    { class: "review", "aria-labelledby": "review" },
    make("h2", { id: "review", tabindex: "-1" }, "Before anything is sent"),
    make("p", {}, "Your answers were changed at random on this device just now. What you answered stays here; only the lines marked “Sent” leave it."),
    make("ul", { class: "cards" }, rows),
    make("p", { class: "notice" }, survey.total(levels).statement),
    make("h3", {}, "This is exactly what leaves your phone"),
    make("pre", { class: "wraps", id: "body", tabindex: "0", "aria-label": "The text that is sent" }, JSON.stringify(body, null, 1)),
    make(
      "p",
      { class: "quiet small" },
      "Your address on the internet reaches the hub as with every page that you open; it is not kept. If you go back and answer the same again, the same is sent: looking twice changes nothing.",
    ),
    make("p", { role: "alert", class: "problem", hidden: true }),
    make(
      "div",
      { class: "actions" },
      make("button", { type: "button", id: "send", onclick: onsend }, "Send"),
      make("button", { type: "button", class: "second", onclick: onback }, "Back to the questions"),
    ),
  );
};
