// Replays vectors and returns where this client's report or its number of words is another one.
import { listedWords, openProtocol } from "./client.mjs";

export default async function replay(cases) {
  const differences = [];
  let compared = 0;
  for (const { record, draws } of cases) {
    const protocol = await openProtocol(record);
    for (const draw of draws) {
      const found = replayOne(protocol, draw);
      if (found !== JSON.stringify([draw.report, draw.used])) differences.push({ record, draw, found });
      compared += 1;
    }
  }
  return { compared, differences: differences.slice(0, 5) };
}

function replayOne(protocol, { value, words }) {
  let used = 0;
  const listed = listedWords(words.map(BigInt));
  const counted = () => {
    used += 1;
    return listed();
  };
  const report = protocol.toReport(protocol.randomize(value, { words: counted }));
  return JSON.stringify([report, used]);
}
