// Makes many reports with the randomness of the browser.
import { openProtocol } from "./client.mjs";

export default async function sample({ tasks, count, outputsOnly }) {
  return Promise.all(
    tasks.map(async ({ record, value }) => {
      const protocol = await openProtocol(record);
      const reports = Array.from({ length: count }, () => protocol.toReport(protocol.randomize(value)));
      return outputsOnly ? reports.map(({ y }) => y) : reports;
    }),
  );
}
