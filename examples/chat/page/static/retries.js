// The page that shows what happens to retries.

import { ask, me } from "./api.js";
import { begin, finish, unfinished } from "./attempts.js";
import { $, say } from "./dom.js";
import { startQueue } from "./queue.js";
import { drawTiles, storm } from "./storm.js";

const kind = "storm";

async function countGroups() {
  const { groups } = await ask("GET", "/v1/groups");
  $("group-count").textContent = groups.length;
  return groups.length;
}

async function run(attempt) {
  $("create-50").disabled = true;
  try {
    await storm(attempt, ["POST", "/v1/groups", { body: attempt.body, key: attempt.key }], countGroups);
    finish(attempt);
  } catch (problem) {
    say($("storm-status"), problem.message, "bad");
  }
  $("create-50").disabled = false;
}

async function start() {
  drawTiles();
  $("signed-out").hidden = Boolean(me());
  $("create-50").disabled = !me();
  if (!me()) return;
  $("storm-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    $("create-50").disabled = true;
    try {
      const before = await countGroups();
      await run(begin(kind, { body: { name: $("storm-name").value.trim() }, before }));
    } catch (problem) {
      $("create-50").disabled = false;
      say($("storm-status"), problem.message, "bad");
    }
  });
  startQueue();
  countGroups().catch(() => {}); // the next answer counts them
  const [left] = unfinished(kind);
  if (left) await run(left);
}

start();
