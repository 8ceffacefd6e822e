// The tour of the demo: which steps were looked at, and whether it is hidden, is remembered by this browser only.
const guide = document.querySelector("[data-guide]");
const closed = document.querySelector("[data-hidden-guide]");
const place = `cloister-tour-${guide.dataset.guide}`;

const read = () => {
  try {
    return { seen: [], hidden: false, ...JSON.parse(localStorage.getItem(place) ?? "{}") };
  } catch {
    return { seen: [], hidden: false };
  }
};
const keep = (changes) => {
  try {
    localStorage.setItem(place, JSON.stringify({ ...read(), ...changes }));
  } catch {
    // Without storage the tour simply starts anew.
  }
};

const show = () => {
  const { seen, hidden } = read();
  guide.hidden = hidden;
  closed.hidden = !hidden;
  for (const step of guide.querySelectorAll("[data-step]")) {
    step.nextElementSibling.hidden = !seen.includes(step.dataset.step);
  }
};

for (const step of guide.querySelectorAll("[data-step]")) {
  step.addEventListener("click", () => keep({ seen: [...new Set([...read().seen, step.dataset.step])] }));
}
guide.querySelector("[data-hide]").addEventListener("click", () => {
  keep({ hidden: true });
  show();
  closed.querySelector("button").focus();
});
closed.querySelector("[data-show]").addEventListener("click", () => {
  keep({ hidden: false });
  show();
  guide.querySelector("a").focus();
});
addEventListener("pageshow", show);
