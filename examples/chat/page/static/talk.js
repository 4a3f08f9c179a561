// One group's conversation: its members and messages.

import { ask, me, sentence, settle } from "./api.js";
import { begin, finish, unfinished } from "./attempt.js";
import { $, el, numbers, say } from "./dom.js";

const kind = "sending";
const every = 2000; // milliseconds between two looks for new messages
let opened = null;
let last = 0;

/** The id of the group that is shown, or undefined. */
export const openedGroup = () => opened?.id;

/** Shows a group as it is now. */
export async function openGroup(group) {
  opened = await ask("GET", `/v1/groups/${group.id}`);
  last = 0;
  $("talk-title").textContent = opened.name;
  $("talk-none").hidden = true;
  $("talk").hidden = false;
  $("members-form").hidden = opened.owner_id !== me().id;
  $("messages").replaceChildren();
  say($("message-status"), "");
  showMembers();
  await showMessages();
}

function showMembers() {
  $("members").replaceChildren(...opened.members.map(({ id, name, owner }) =>
    el("li", {}, `${name} · ${id}${owner ? " · owner" : ""}`)));
}

/** Adds the messages that are not shown yet. */
async function showMessages() {
  const group = opened;
  const { messages } = await ask("GET", `/v1/groups/${group.id}/messages?after=${last}&limit=200`);
  for (const message of messages) {
    // Another look may have been faster, or the user somewhere else by now.
    if (group !== opened || message.seq <= last) continue;
    last = message.seq;
    $("messages").append(bubble(message));
    $("messages").scrollTop = $("messages").scrollHeight;
  }
}

function bubble(message) {
  const time = new Date(message.created_at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const whose = { [me().id]: "mine", 0: "server" }[message.author_id] ?? "";
  return el("li", { className: whose }, el("small", {}, `${message.author} · ${time}`), message.text);
}

async function sendMessage(attempt) {
  const status = $("message-status");
  $("message-send").disabled = true;
  const path = `/v1/groups/${attempt.group}/messages`;
  const answer = await settle("POST", path, { body: { text: attempt.text }, key: attempt.key },
    (state) => say(status, state === "asking" ? "" : "No answer yet. Asking again, with the same key …"));
  finish(kind);
  $("message-send").disabled = false;
  say(status, answer.ok ? "" : sentence(answer.value), answer.ok ? "" : "bad");
  if (answer.ok && opened?.id === attempt.group) await showMessages();
}

async function addMembers() {
  const status = $("message-status");
  try {
    opened = await ask("POST", `/v1/groups/${opened.id}/members`, { body: { member_ids: numbers($("members-ids").value) } });
    $("members-form").reset();
    say(status, "");
    showMembers();
    $("members-ids").focus();
  } catch (problem) {
    say(status, problem.message, "bad");
  }
}

/**
 * Makes the forms work, looks for news, and sends what was left unsent. changed
 * is called when a group is not what its list says.
 */
export function startTalk(changed) {
  $("message-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("message-text").value;
    $("message-text").value = "";
    sendMessage(begin(kind, { group: opened.id, text }));
  });
  $("members-form").addEventListener("submit", (event) => {
    event.preventDefault();
    addMembers().then(changed).catch((problem) => say($("message-status"), problem.message, "bad"));
  });
  setInterval(() => opened && !document.hidden && showMessages().catch(() => {}), every);
  const left = unfinished(kind);
  if (left) sendMessage(left);
}
