// Signing in and out, and starting the rest.

import { ask, me, remember, send, sentence, settle } from "./api.js";
import { finish, newKey } from "./attempt.js";
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
  const name = $("sign-in-name").value.trim();
  const password = $("sign-in-password").value;
  busy(true);
  try {
    // One key for one intent: a retry after a lost answer adds no second user.
    if (event.submitter === $("sign-up-button")) {
      const answer = await settle("POST", "/v1/users", { body: { name, password }, key: newKey() });
      if (!answer.ok) throw new Error(sentence(answer.value));
    }
    const { token, user } = await ask("POST", "/v1/sessions", { body: { name, password, device: "Browser" } });
    remember({ ...user, token });
    await start();
  } catch (problem) {
    notice(problem.message);
  } finally {
    busy(false);
  }
}

function busy(is) {
  for (const id of ["sign-in-button", "sign-up-button"]) $(id).disabled = is;
}

async function signOut() {
  // What is unfinished belongs to the user that leaves.
  for (const kind of ["creation", "sending"]) finish(kind);
  await send("DELETE", "/v1/sessions/current").catch(() => {});
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
