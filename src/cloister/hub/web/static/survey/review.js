// The review: what was answered, what is sent in its place, and the exact text that leaves the device.

import { inWords } from "./chances.js";
import { make } from "./dom.js";
import { written } from "./form.js";

/** Return the section that shows a body before it is sent. */
export const reviewOf = ({ survey, records, answers, levels, body, repeated, onsend, onback, onnew }) => {
  const isRepeated = (report) => repeated.includes(report.question);
  const rows = survey.questions.map((question) => {
    const report = body.submission.reports.find((one) => one.question === question.id);
    const facts = report
      ? [
          make("dt", {}, "You answered"),
          make("dd", {}, written(answers[question.id])),
          make("dt", {}, `Sent (${report.level} protection)`),
          make("dd", { class: "sent" }, inWords(records[question.id][report.level], report.y)),
          ...(isRepeated(report) ? [make("dt", {}, "Why"), make("dd", {}, "the same report as before, whatever you answered now")] : []),
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
    repeated.length === 0
      ? null
      : make(
          "div",
          { class: "notice attention" },
          make("p", {}, "This device has sent reports to some of these questions before, and sends the same ones again: that tells nothing new about you. New reports would tell more; the factors multiply."),
          make("button", { type: "button", class: "second", onclick: onnew }, "Make new reports"),
        ),
    make("h3", {}, "This is exactly what leaves your phone"),
    make("pre", { class: "wraps", id: "body", tabindex: "0", "aria-label": "The text that is sent" }, JSON.stringify(body, null, 1)),
    make(
      "p",
      { class: "quiet small" },
      "Your address on the internet reaches the hub as with every page that you open; it is not kept. As long as this page is open, going back and answering the same gives the same reports: looking twice changes nothing. Until you press “Send”, nothing about your answers is stored, not even here.",
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
