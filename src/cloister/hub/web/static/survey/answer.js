// The respondent's page: its steps in order, and what is said when reports have arrived, wait or were refused.
// The answers stay in this page's memory; `sending.js` is the only module that sends.

import { forget, history, keepSent, namesOf, remember, remove, sentUnder } from "./device.js";
import { fill, make } from "./dom.js";
import { questionOf, read } from "./form.js";
import { openSurvey } from "./local/index.js";
import { keepForOffline } from "./offline.js";
import { reviewOf } from "./review.js";
import { admission, isInvited, keepForSending, Refused, send, takeInvitation, waiting } from "./sending.js";

const address = document.body.dataset.address;
const place = document.querySelector("#survey");

const show = (...children) => {
  fill(place, ...children);
  place.setAttribute("aria-busy", "false");
};

const complain = (problem) => {
  const words = problem.problem ? `${problem.problem} ${problem.fix}` : problem.message;
  const said = place.querySelector(".problem");
  if (said === null) {
    show(make("p", { role: "alert", class: "notice bad problem" }, words));
    return;
  }
  said.textContent = words;
  said.hidden = false;
  place.querySelector(`[data-question="${problem.question ?? ""}"] input`)?.focus();
};

const loaded = async () => {
  const response = await fetch(`/api/v1/surveys/${address}/page`, { credentials: "omit", cache: "no-store" });
  const found = await response.json();
  if (!response.ok) throw Object.assign(new Error(), found);
  return found;
};

const deviceNotes = () =>
  make(
    "details",
    { class: "device" },
    make("summary", {}, "What stays on this device"),
    make(
      "p",
      {},
      "This device keeps the random reports that you sent, and repeats them if the same question is asked again, so that asking twice teaches nothing new. It never keeps what you answered. What it keeps can be read by this site, which has the reports already, and by people who use this device.",
    ),
    history().length === 0
      ? make("p", {}, "Nothing was sent from here yet.")
      : make("ul", {}, history().map((one) => make("li", {}, `${one.day}: ${one.title}, ${one.questions} answered. ${one.statement}`))),
    make(
      "button",
      {
        type: "button",
        class: "second",
        onclick: async () => {
          await forget();
          location.reload();
        },
      },
      "Forget everything on this device",
    ),
  );

const done = (sentence, isGood = true) => {
  show(
    make("h2", { id: "done", tabindex: "-1" }, isGood ? "Thank you" : "Kept on this device"),
    make("p", { class: isGood ? "notice good" : "notice attention", role: "status" }, sentence),
    deviceNotes(),
  );
  document.querySelector("#done").focus();
};

const UNINVITED = "This survey is for invited people. Open the link of your invitation, as you got it.";

const STATES = {
  counted: "Your reports have arrived and were counted. The hub keeps them without a name, a time or an address, and apart from each other.",
  "counted before": "Your reports had arrived before and were counted once.",
};

const deliver = async () => {
  const { entry } = waiting(address);
  const state = await send(address);
  remember(entry);
  remove(`admission/${address}`);
  done(STATES[state]);
};

const tryLater = () => {
  done("There is no connection now. Your reports wait on this device, and are sent as soon as this page is open with a connection.", false);
  const again = () =>
    deliver()
      .then(() => removeEventListener("online", again))
      .catch((problem) => {
        if (!(problem instanceof Refused)) return;
        removeEventListener("online", again);
        done(problem.message, false);
      });
  addEventListener("online", again);
};

const deliverOrWait = () =>
  deliver().catch((problem) => {
    if (problem instanceof Refused) throw problem;
    tryLater();
  });

const briefly = ({ statement }) => statement.replace(/^Whatever you answer, the collector's odds about .* can change by/, "The collector's odds can change by");

const ask = async (page) => {
  const survey = await openSurvey(page.page);
  if (survey.terms === null) throw new Error("This survey does not say under its fingerprint who may answer. Tell the people who run it to publish it anew.");
  const records = Object.fromEntries(
    page.page.questions.map(({ id, levels }) => [id, Object.fromEntries(levels.map(({ name, protocol }) => [name, protocol]))]),
  );
  const total = make("output", { class: "total", "aria-live": "polite" });
  const tell = () => {
    try {
      const { answers, levels } = read(form, survey.questions);
      total.textContent = Object.keys(answers).length === 0 ? "Nothing answered yet." : briefly(survey.total(levels));
    } catch {
      total.textContent = "";
    }
  };
  const questions = survey.questions.map((question, n) =>
    questionOf(question, records[question.id], n + 1, survey.questions.length, tell),
  );
  const form = make(
    "form",
    { novalidate: true, autocomplete: "off" },
    questions,
    make("p", { role: "alert", class: "notice bad problem", hidden: true }),
    make("div", { class: "together" }, make("div", {}, make("h2", {}, "All answers together"), total), make("button", {}, "Review")),
  );
  const before = history().filter((one) => one.address === address);
  const introduction = make(
    "section",
    { class: "introduction" },
    survey.purpose ? make("p", { class: "lead" }, survey.purpose) : null,
    make("p", {}, make("strong", {}, survey.collector), " asks. Your answers are changed at random on this device before anything is sent, so that nobody has to be trusted with them."),
    make("p", {}, survey.terms.sentence),
    make("p", { class: "quiet small" }, "Fingerprint of this survey and of its terms, the same for everybody: ", make("span", { class: "hash", id: "fingerprint" }, survey.fingerprint)),
    make("p", { class: "notice attention" }, survey.notice),
    before.length ? make("p", { class: "notice attention" }, `You answered this survey from this device on ${before.at(-1).day}. Answering again tells more about you.`) : null,
  );
  const back = (focused) => {
    show(introduction, form, deviceNotes());
    tell();
    focused?.focus();
  };
  const memory = new Map(); // Reports by answer, in the memory of this page alone; gone when it is closed.
  const review = async ({ isNew }) => {
    const { answers, levels } = read(form, survey.questions);
    const submission = await survey.submission(answers, levels, { memory });
    const names = await namesOf(survey.questions, submission.reports);
    const sent = isNew ? [] : sentUnder(names);
    const reports = submission.reports.map((report, n) => ({ ...report, y: sent[n] ?? report.y }));
    const repeated = reports.filter((_, n) => sent[n] !== undefined).map(({ question }) => question);
    const proof = await admission(page, survey.terms);
    if (proof === null) throw new Error(UNINVITED);
    const body = { submission: { ...submission, reports }, ...proof };
    const statement = survey.total(levels).statement;
    const entry = { address, title: survey.title, day: new Date().toISOString().slice(0, 10), questions: reports.length, statement };
    const onsend = () => {
      place.querySelector("#send").disabled = true;
      keepSent(names, reports);
      keepForSending(address, body, entry);
      form.reset();
      memory.clear();
      deliverOrWait().catch(complain);
    };
    const onback = () => back(form.querySelector("button"));
    const onnew = () => review({ isNew: true }).catch(complain);
    show(reviewOf({ survey, records, answers, levels, body, repeated, onsend, onback, onnew }));
    document.querySelector("#review").focus();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    review({ isNew: false }).catch(complain);
  });
  back(null);
  return survey;
};

const start = async () => {
  takeInvitation(address);
  const page = await loaded();
  if (waiting(address) !== null) {
    await deliverOrWait();
    return;
  }
  if (page.state !== "open") {
    show(make("p", { class: "notice attention" }, "This survey is closed. It takes no more answers."), deviceNotes());
    return;
  }
  const { terms } = await ask(page);
  keepForOffline(address, page.code).then((isKept) => {
    document.querySelector("#offline").hidden = !isKept;
  });
  const warn = (words) => place.prepend(make("p", { role: "alert", class: "notice bad" }, words));
  if (!isInvited(page, terms)) warn(UNINVITED);
  else if (terms.admission === "blind") admission(page, terms).catch((problem) => problem instanceof Refused && warn(problem.message));
};

start().catch(complain);
