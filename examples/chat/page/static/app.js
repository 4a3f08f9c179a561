// Signing in and out, and starting the rest.

import { ask, me, remember } from "./api.js";
import { finish } from "./attempt.js";
import { $, say } from "./dom.js";
import { loadGroups, startGroups } from "./groups.js";
import { startQueue } from "./queue.js";
import { drawTiles } from "./storm.js";
import { startTalk } from "./talk.js";

function notice(text) {
  say($("notice"), text);
  $("notice").hidden = !text;
}

async function signIn(event) {
  event.preventDefault();
  try {
    remember(await ask("POST", "/v1/users", { body: { name: $("sign-in-name").value.trim() } }));
    await start();
  } catch (problem) {
    notice(problem.message);
  }
}

function signOut() {
  // What is unfinished belongs to the one who leaves.
  for (const kind of ["creation", "sending"]) finish(kind);
  remember(null);
  location.reload();
}

async function start() {
  const user = me();
  $("sign-in").hidden = Boolean(user);
  $("desk").hidden = $("who").hidden = !user;
  if (!user) {
    $("sign-in-name").focus();
    return;
  }
  notice("");
  $("who-name").textContent = `${user.name}, number ${user.id}`;
  drawTiles();
  startTalk(loadGroups);
  startQueue();
  await startGroups();
}

$("sign-in-form").addEventListener("submit", signIn);
$("sign-out").addEventListener("click", signOut);
start().catch((problem) => notice(problem.message));
