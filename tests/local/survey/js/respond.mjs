// What a survey's page does: perturb each answer at its level, and put the reports into a submission.
import { openProtocol } from "/src/cloister/local/js/index.js";

export default async function respond({ page, tasks }) {
  return Promise.all(tasks.map((task) => submission(page, task)));
}

async function submission(page, { answers, levels, day }) {
  const reports = [];
  for (const question of page.questions) {
    const level = chosen(question, levels);
    if (level.protocol === null) continue;
    const protocol = await openProtocol(level.protocol);
    const y = protocol.randomize(reported(question, answers[question.id]));
    reports.push(protocol.toReport(y, { survey: page.survey, question: question.id, level: level.name }));
  }
  return { ...page.submission, id: oneTimeId(), day, reports };
}

function chosen(question, levels) {
  const wanted = typeof levels === "string" ? levels : levels?.[question.id];
  const named = (name) => question.levels.find((level) => level.name === name);
  return named(wanted) ?? named(question.default_level);
}

function reported(question, answer) {
  if (question.bins === null) return answer;
  const { edges, labels } = question.bins;
  const below = edges.slice(1, -1).filter((edge) => Number(edge) <= answer).length;
  return labels[below];
}

function oneTimeId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
