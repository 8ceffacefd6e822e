// What happens to an answer, in one plain sentence, computed from the thresholds of the checked protocol record.

const CERTAIN = 2n ** 64n;

const chance = (threshold) => Number((BigInt(threshold) * 1_000_000n) / CERTAIN) / 1_000_000;

const percent = (share) => {
  const shown = 100 * share;
  if (shown > 0 && shown < 0.1) return "under 0.1%";
  if (shown < 100 && shown > 99.9) return "over 99.9%";
  return `${Number(shown.toPrecision(shown > 99 ? 3 : 2))}%`;
};

const truth = ({ params }) =>
  `Your true answer is sent with probability ${percent(chance(params.truth))}; otherwise another answer is sent in its place.`;

const coins = ({ params }) => {
  if ("truth" in params) return truth({ params });
  const shares = [1 - chance(params.yes_if_no), chance(params.yes_if_yes)];
  const [least, most] = [Math.min(...shares), Math.max(...shares)].map(percent);
  const written = least === most ? least : `${least} to ${most}, depending on the answer`;
  return `Your true answer is sent with probability ${written}; otherwise the other one is sent.`;
};

const marks = ({ params }, own) =>
  `Marks are sent instead of your answer: ${own} is marked with probability ${percent(chance(params.keep))}, ` +
  `every other option with probability ${percent(chance(params.flip))}.`;

const number = () =>
  "A random number is sent in place of yours. It may be far from it; only the mean of many people can be told.";

const SENTENCES = {
  randomized_response: coins,
  direct_encoding: truth,
  symmetric_unary_encoding: (record) => marks(record, "your own option"),
  optimized_unary_encoding: (record) => marks(record, "your own option"),
  unary_set: (record) => marks(record, "each option that you pick"),
  optimized_local_hashing: ({ params }) =>
    "The options are put into groups at random, and a group is sent. It is the group of your true answer with " +
    `probability ${percent(chance(params.truth))}.`,
  hadamard_response: ({ params }) =>
    `A random pattern is sent instead of your answer. It fits your true answer with probability ${percent(chance(params.truth))}.`,
  pram: ({ params }) => {
    const limits = params.rows.map((row) => [0n, ...row.map(BigInt), CERTAIN]);
    const shares = limits.map((row, place) => chance(row[place + 1] - row[place]));
    return `Your true answer is sent with probability ${percent(Math.min(...shares))} or more; otherwise one near it, mostly.`;
  },
  duchi: number,
  piecewise: number,
  square_wave: number,
  hybrid: number,
};

/** Return the sentence of a level; its record must have been checked by `openSurvey`. */
export const plainly = (record) => {
  // Another protocol's sentence would be untrue: one that is not here must not be asked with.
  if (!Object.hasOwn(SENTENCES, record.name)) throw new Error("This page cannot say what happens to an answer. Tell the people who run the survey.");
  return SENTENCES[record.name](record);
};

/** Return what a report says in words, for the review. */
export const inWords = (record, y) => {
  const domain = record.domain ?? [];
  if (["randomized_response", "direct_encoding", "pram"].includes(record.name)) return `“${domain[y]}”`;
  if (typeof y === "string") {
    const marked = domain.filter((_, place) => y[place] === "1");
    return marked.length === 0 ? "no marks at all" : `marks at ${marked.map((name) => `“${name}”`).join(", ")}`;
  }
  return record.bounds ? `a random number, written as ${JSON.stringify(y)}` : `the pattern ${JSON.stringify(y)}`;
};
