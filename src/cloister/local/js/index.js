/**
 * Local differential privacy in the browser: the answer is perturbed on the device, and only the report leaves it.
 *
 *     import { openProtocol } from "./index.js";
 *     const protocol = await openProtocol(await (await fetch("protocol.json")).json());
 *     element.textContent = protocol.statement();
 *     const report = protocol.toReport(protocol.randomize("yes"));
 *
 * and for a whole survey:
 *
 *     const survey = await openSurvey(await (await fetch("page.json")).json());
 *     element.textContent = survey.total({ married: "high" }).statement;
 *     const submission = await survey.submission({ married: "no" }, { married: "high" });
 */

export { RefusedError } from "./errors.js";
export { openProtocol, PROTOCOLS } from "./protocol.js";
export { oddsFactor, statement, totalStatement } from "./statement.js";
export { openSurvey } from "./survey.js";
export { listedWords, systemWords } from "./words.js";
