// Opens pages as a respondent's browser does: what it shows and sends for a good one, and why it refuses the others.
import { listedWords, openSurvey, RefusedError } from "../../js/client.mjs";

export default async function take({ page, tasks = [], totals = [], wrong = [] }) {
  const survey = await openSurvey(page);
  const memory = new Map();
  const { total, submission, ...shown } = survey;
  return {
    shown,
    totals: totals.map((levels) => total(levels ?? undefined)),
    sent: await inOrder(tasks, (task) => send(survey, task, memory)),
    refused: await inOrder(wrong, (one) => reason(() => openSurvey(one))),
  };
}

async function inOrder(items, act) {
  const done = [];
  for (const item of items) done.push(await act(item));
  return done;
}

async function send(survey, { answers, levels, options = {}, words, remembers = false }, memory) {
  let used = 0;
  const listed = words && listedWords(words.map(BigInt));
  const counted = listed && (() => ((used += 1), listed()));
  const given = { ...options, ...(counted && { words: counted }), ...(remembers && { memory }) };
  try {
    return { submission: await survey.submission(answers, levels ?? undefined, given), used };
  } catch (error) {
    return { refused: told(error) };
  }
}

async function reason(attempt) {
  try {
    await attempt();
  } catch (error) {
    return told(error);
  }
  return "nothing was refused";
}

function told(error) {
  return error instanceof RefusedError ? error.problem : `another error: ${error?.stack}`;
}
