// Starts the chat for the signed-in user, or shows the sign-in form.

import { startAccount } from "./account.js";
import { me, signedOut } from "./api.js";
import { show, startConversation } from "./conversation.js";
import { startDetails } from "./details.js";
import { $, say } from "./dom.js";
import { connect, live, state } from "./live.js";
import { loadGroups, model } from "./model.js";
import { continueSending } from "./sending.js";
import { continueCreations, startSidebar } from "./sidebar.js";

const patience = 1500; // milliseconds without a connection before the page says so

async function start() {
  const user = me();
  $("sign-in").hidden = Boolean(user);
  $("desk").hidden = $("account").hidden = !user;
  if (!user) {
    say($("sign-in-status"), signedOut());
    $("sign-in-name").focus();
    return;
  }
  $("account-name").textContent = user.name;
  connect();
  await loadGroups().catch((problem) => problem.status ?? say($("talk-status"), problem.message, "bad"));
  show();
  continueCreations();
  continueSending();
  if (!document.body.classList.contains("in-group")) $("new-group").focus();
}

let bannerTimer = 0;
live.addEventListener("state", () => {
  clearTimeout(bannerTimer);
  if (state === "open") $("offline").hidden = true;
  else bannerTimer = setTimeout(() => { $("offline").hidden = false; }, patience);
});
// A group that the address names may arrive with the list.
model.addEventListener("groups", show);

startAccount(start);
startSidebar();
startConversation();
startDetails();
start();
