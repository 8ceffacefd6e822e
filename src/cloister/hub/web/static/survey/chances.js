// What happens to an answer, in one plain sentence, computed from the thresholds of the checked protocol record.

const CERTAIN = 2n ** 64n;

// The largest number below 1 stands for every chance that is nearly, but not quite, certain.
const chance = (threshold) =>
  BigInt(threshold) < CERTAIN ? Math.min(Number(threshold) / Number(CERTAIN), 1 - 2 ** -53) : 1;

// As `percent` of cloister.core.wordings: three digits, and never nothing or everything unless it is. The chance that the
// truth is sent must not be understated, so that it is rounded up; the chance of a mark that hides it is rounded down.
const percent = (share, round = Math.ceil) => {
  if (share === 0 || share === 1) return `${100 * share}%`;
  if (share < 0.0001) return "below 0.01%";
  if (share > 0.9999) return "above 99.99%";
  const step = 10 ** (share > 0.99 ? 2 : -Math.floor(Math.log10(share)));
  // A threshold of 64 bits falls short of the chance that was meant, and a product misses it, behind the sixth decimal.
  return `${round(Number((100 * share * step).toFixed(6))) / step}%`;
};

const truth = ({ params }) =>
  `Your true answer is sent with probability ${percent(chance(params.truth))}; otherwise another answer is sent in its place.`;

const coins = ({ params }) => {
  if ("truth" in params) return truth({ params });
  const shares = [1 - chance(params.yes_if_no), chance(params.yes_if_yes)];
  const [least, most] = [percent(Math.min(...shares), Math.floor), percent(Math.max(...shares))];
  const written = Math.abs(shares[0] - shares[1]) < 1e-9 ? most : `${least} to ${most}, depending on the answer`;
  return `Your true answer is sent with probability ${written}; otherwise the other one is sent.`;
};

const marks = ({ params }, own) =>
  `Marks are sent instead of your answer: ${own} is marked with probability ${percent(chance(params.keep))}, ` +
  `every other option with probability ${percent(chance(params.flip), Math.floor)}.`;

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
    return `Your true answer is sent with probability ${percent(Math.min(...shares), Math.floor)} or more; otherwise one near it, mostly.`;
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
