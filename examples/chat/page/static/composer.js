// The composer: a text of several lines, kept for each conversation and tab.

import { ask, me } from "./api.js";
import { $, say } from "./dom.js";
import { request } from "./live.js";
import { groups, putAnswer } from "./model.js";
import { sendMessage } from "./sending.js";

let group = "";
let editing = null; // the message that is edited
let lastTyping = 0;

const draft = () => `semel-chat.draft.${group}`;

/** Makes the composer work. */
export function startComposer() {
  const text = $("message-text");
  text.addEventListener("input", () => {
    grow();
    if (editing) return;
    sessionStorage.setItem(draft(), text.value);
    if (Date.now() - lastTyping < 3000 || !text.value) return;
    lastTyping = Date.now();
    request("typing", { group }).catch(() => {}); // a lost hint does no harm
  });
  let shift = false;
  // The Enter that opened the conversation may still be down when the composer gets the focus. It
  // must not send the draft.
  let before = false;
  text.addEventListener("focus", () => {
    shift = false;
    before = true;
  });
  text.addEventListener("keyup", () => {
    before = false;
  });
  text.addEventListener("beforeinput", (event) => {
    const own = !before;
    if (event.inputType !== "insertLineBreak") before = false;
    else if (!shift || !own) {
      event.preventDefault();
      if (own) $("message-form").requestSubmit();
    }
  });
  text.addEventListener("keydown", (event) => {
    if (!event.repeat) before = false;
    shift = event.shiftKey;
    if (event.key === "Escape" && editing) stopEditing();
    if (event.key === "ArrowUp" && !text.value) editLast(event);
  });
  $("message-form").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  $("edit-cancel").addEventListener("click", stopEditing);
}

/** Shows the draft of a group. */
export function openComposer({ id, name }) {
  group = id;
  editing = null;
  $("editing").hidden = true;
  $("message-text").value = sessionStorage.getItem(draft()) ?? "";
  nameComposer(name);
  grow();
  if (matchMedia("(min-width: 52rem)").matches) $("message-text").focus();
}

/** Shows where a message goes. */
export function nameComposer(name) {
  $("message-text").placeholder = `Message to ${name}`;
}

/** Makes the composer as high as its text. The style limits it. */
function grow() {
  const text = $("message-text");
  text.rows = Math.min(8, text.value.split("\n").length);
}

async function submit() {
  const text = $("message-text").value.trim();
  if (!text) return;
  if (editing) {
    await saveEdit(text);
    return;
  }
  sessionStorage.removeItem(draft());
  $("message-text").value = "";
  grow();
  sendMessage(group, text);
}

async function saveEdit(text) {
  const message = editing;
  try {
    putAnswer(await ask("PATCH", `/v1/groups/${message.group_id}/messages/${message.seq}`, { body: { text } }));
    if (editing === message) stopEditing();
    say($("talk-status"), "");
  } catch (problem) {
    say($("talk-status"), problem.message, "bad"); // the text stays in the composer
  }
}

/** Puts a message into the composer. */
export function edit(message) {
  editing = message;
  $("editing").hidden = false;
  $("message-text").value = message.text;
  grow();
  $("message-text").focus();
}

function stopEditing() {
  editing = null;
  $("editing").hidden = true;
  $("message-text").value = sessionStorage.getItem(draft()) ?? "";
  grow();
  $("message-text").focus();
}

function editLast(event) {
  const messages = [...(groups.get(group)?.messages.values() ?? [])];
  const own = messages.filter((message) => message.author_id === me().id && !message.deleted).sort((a, b) => b.seq - a.seq)[0];
  if (!own) return;
  event.preventDefault();
  edit(own);
}
