// A piece of work that goes on: look until it has ended, then show what it gave.
import { callApi } from "./forms.js";

const place = document.querySelector("[data-job]");
const pause = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds));

for (let wait = 250; place; wait = Math.min(wait * 1.5, 3000)) {
  await pause(wait);
  try {
    const job = await callApi("GET", place.dataset.job);
    if (job.is_final || job.state === "waiting") {
      location.reload();
      break;
    }
    if (job.progress > 0) place.querySelector("progress").value = job.progress;
    const stage = place.querySelector("[data-stage]");
    const words = job.stage || "waiting for a worker";
    if (stage.textContent !== words) stage.textContent = words;
  } catch {
    place.querySelector("[data-stage]").textContent = "The hub does not answer; trying again.";
  }
}
