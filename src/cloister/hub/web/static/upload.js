// Uploads: the file is the body of the request, with its progress shown. data-upload-type is for other files than
// tables, and data-next says where to go, such as /algorithms/{id}.
import { say } from "./forms.js";

const csrf = () => document.cookie.match(/(?:^|; )cloister_csrf=([^;]+)/)?.[1] ?? "";
const megabytes = (bytes) => `${(bytes / 1e6).toLocaleString("en", { maximumFractionDigits: 1 })} MB`;

const answerOf = (request) => {
  try {
    return JSON.parse(request.responseText);
  } catch {
    return {};
  }
};

const go = (next, found) => {
  if (!next) return location.reload();
  location.assign(next.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(found[name] ?? ""))));
};

for (const form of document.querySelectorAll("form[data-upload]")) {
  const [button, shown] = [form.querySelector("button"), form.querySelector("[data-progress]")];
  const [bar, stage] = [shown.querySelector("progress"), shown.querySelector("[data-stage]")];
  const fail = (problem, fix) => {
    say(form, problem, fix);
    button.disabled = false;
    shown.hidden = true;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const file = form.querySelector("input[type=file]").files[0];
    say(form, "", "");
    if (file.size > Number(form.dataset.limit ?? Infinity)) {
      return fail(`The file has ${megabytes(file.size)}; this hub takes ${megabytes(Number(form.dataset.limit))}.`, "choose a smaller file, or send it packed (.csv.gz).");
    }
    const request = new XMLHttpRequest();
    request.open("POST", form.dataset.upload);
    request.setRequestHeader("X-CSRF-Token", csrf());
    const isParquet = file.name.toLowerCase().endsWith(".parquet");
    const table = isParquet ? "application/vnd.apache.parquet" : "text/csv";
    request.setRequestHeader("Content-Type", form.dataset.uploadType ?? table);
    [shown.hidden, button.disabled, bar.value] = [false, true, 0];
    stage.textContent = `Sending ${megabytes(file.size)} …`;
    let tenth = 0;
    request.upload.addEventListener("progress", (moved) => {
      if (!moved.lengthComputable) return;
      bar.value = (0.9 * moved.loaded) / moved.total;
      const now = Math.floor((10 * moved.loaded) / moved.total);
      if (now > tenth) stage.textContent = `Sending: ${10 * (tenth = now)} %`;
    });
    request.upload.addEventListener("load", () => {
      bar.removeAttribute("value");
      stage.textContent = "Encrypting and reading the columns …";
    });
    request.addEventListener("loadend", () => {
      const found = answerOf(request);
      if (request.status === 201) return go(form.dataset.next, found);
      fail(found.problem ?? "The upload broke off.", found.fix ?? "check the connection and try again.");
    });
    request.send(file);
  });
}
