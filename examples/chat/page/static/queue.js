// The numbers of the queue, live.

import { ask } from "./api.js";
import { $, el } from "./dom.js";

const every = 2000; // milliseconds between two requests; the server counts less often
const names = { welcome_member: "Welcomes", import_message: "Imported messages" };
const states = ["waiting", "running", "done", "failed", "in_doubt"];

/** Shows the numbers, and updates them while the page is visible. */
export function startQueue() {
  const look = () => document.hidden || show().then(fresh, stale);
  look();
  setInterval(look, every);
  document.addEventListener("visibilitychange", look);
}

const fresh = () => $("queue").classList.remove("stale");
const stale = () => $("queue").classList.add("stale");

async function show() {
  const queue = await ask("GET", "/v1/queue");
  const rows = queue.operations.filter((o) => o.operation !== "import_message" || queue.import || states.some((s) => o[s]));
  $("queue-rows").replaceChildren(...rows.map(row));
  $("queue-import").hidden = !queue.import;
  if (queue.import) $("queue-import").textContent = sentence(queue.import);
}

function row(counts) {
  return el("tr", {}, el("th", { scope: "row" }, names[counts.operation]), ...states.map((state) => {
    const cell = el("td", { className: counts[state] ? "" : "none" }, counts[state].toLocaleString("en"));
    cell.dataset.count = state;
    return cell;
  }));
}

function sentence(seen) {
  const state = seen.connected ? "is connected to" : "waits for the broker of";
  return `This server ${state} ${seen.queue}. Since it started: deliveries ${seen.delivered}, written ${seen.written}, `
    + `duplicates ${seen.duplicates}, put off ${seen.put_off}, dead letters ${seen.dead}.`;
}
