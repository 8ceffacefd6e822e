// Tries what must be refused, in this very browser, and returns why it was.
import { openProtocol, RefusedError, systemWords } from "./client.mjs";

export default async function refusals({ record, records, values }) {
  const protocol = await openProtocol(record);
  const attempts = [
    ...records.map((wrong) => () => openProtocol(wrong)),
    ...values.map((value) => () => protocol.randomize(value)),
    () => protocol.toReport("never"),
    () => without("getRandomValues", undefined, systemWords()),
    () => without("getRandomValues", (block) => block, systemWords()),
    () => without("subtle", undefined, () => openProtocol(record)),
  ];
  const told = [];
  for (const attempt of attempts) told.push(await reason(attempt));
  return told;
}

async function without(name, value, attempt) {
  Object.defineProperty(crypto, name, { value, configurable: true });
  try {
    return await attempt();
  } finally {
    delete crypto[name];
  }
}

async function reason(attempt) {
  try {
    await attempt();
  } catch (error) {
    return error instanceof RefusedError ? error.problem : `another error: ${error}`;
  }
  return "nothing was refused";
}
