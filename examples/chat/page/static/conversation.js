// The open conversation: its messages, which stay at the end unless the user scrolls up.

import { me, pause, retriable } from "./api.js";
import { startComposer, edit, nameComposer, openComposer } from "./composer.js";
import { deleteMessage } from "./details.js";
import { $, button, el, say, show as showChildren } from "./dom.js";
import { live, online } from "./live.js";
import { groups, loadOlder, markRead, model, openMessages } from "./model.js";
import { discard, pending, retry } from "./sending.js";
import { openedID } from "./sidebar.js";
import { dayOf, linked, timeOf } from "./text.js";

let opened = null;
let readTimer = 0;
const typing = new Map(); // user to the timer that ends it

/** Makes the conversation work. */
export function startConversation() {
  startComposer();
  addEventListener("hashchange", show);
  model.addEventListener("group", ({ detail }) => detail.id === opened?.id && draw());
  model.addEventListener("left", ({ detail }) => detail.id === opened?.id && show());
  live.addEventListener("typing", ({ detail }) => detail.group === opened?.id && isTyping(detail.user));
  live.addEventListener("presence", () => opened && drawHead());
  const list = $("scroller");
  list.addEventListener("scroll", () => {
    if (list.scrollTop < 200 && opened) loadOlder(opened).catch(() => {});
    atEnd() && seen();
    $("to-end").hidden = atEnd();
  });
  $("to-end").addEventListener("click", () => {
    toEnd();
    $("message-text").focus();
  });
  $("back").addEventListener("click", () => {
    location.hash = "#/";
  });
  document.addEventListener("visibilitychange", seen);
  new ResizeObserver(() => stays() && toEnd()).observe(list);
}

/** Shows the group in the address. */
export function show() {
  const group = groups.get(openedID()) ?? null;
  const changed = group !== opened;
  opened = group;
  document.body.classList.toggle("in-group", Boolean(group));
  $("talk").hidden = !group;
  $("talk-none").hidden = Boolean(group);
  $("talk-none-text").textContent = openedID() && !group ? "There is no such group, or you are not a member." : "Choose a group, or create one.";
  if (!group || !changed) return;
  for (const timer of typing.values()) clearTimeout(timer);
  typing.clear();
  following = true;
  $("messages").replaceChildren();
  openComposer(group);
  draw();
  load(group);
}

/** Loads the messages of the open conversation, and tries again while the server cannot answer. */
async function load(group) {
  while (opened === group) {
    try {
      await openMessages(group);
      if (opened === group) say($("talk-status"), "");
      return;
    } catch (problem) {
      if (opened === group) say($("talk-status"), problem.message, "bad");
      if (!retriable(problem)) return;
    }
    await pause(2);
  }
}

let following = true; // new messages scroll into view
let end = 0; // where toEnd has scrolled to

const atEnd = () => {
  const list = $("scroller");
  following = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  return following;
};

function toEnd() {
  const list = $("scroller");
  list.scrollTop = list.scrollHeight;
  end = list.scrollTop;
  following = true;
}

/** Whether the view stays at its end. The user may have scrolled up without an event yet. */
const stays = () => following && ($("scroller").scrollTop >= end || atEnd());

/** Marks the group as read when its end is in view. */
function seen() {
  clearTimeout(readTimer);
  readTimer = setTimeout(() => {
    if (opened?.oldest != null && !document.hidden && following) markRead(opened).catch(() => {});
  }, 300);
}

function drawHead() {
  $("talk-title").textContent = opened.name;
  nameComposer(opened.name);
  const others = opened.members.filter((member) => member.id !== me().id);
  const here = others.filter((member) => online.get(member.id)).length;
  $("talk-people").textContent = others.length
    ? `${opened.members.map((member) => (member.id === me().id ? "You" : member.name)).join(", ")}${here ? ` · ${here} online` : ""}`
    : "Only you";
}

function draw() {
  drawHead();
  const list = $("scroller");
  const stay = stays();
  const height = list.scrollHeight - list.scrollTop;
  const items = [];
  if (opened.oldest === null) items.push(["note", el("li", { className: "note" }, "Loading …")]);
  else if (opened.oldest > 1) items.push(["note", el("li", { className: "note" }, button("Earlier messages", { className: "quiet" }, () => loadOlder(opened)))]);
  let day = "";
  let before = null;
  for (const message of [...opened.messages.values()].sort((a, b) => a.seq - b.seq)) {
    const its = dayOf(new Date(message.created_at));
    if (its !== day) items.push([`day ${its}`, el("li", { className: "day" }, el("span", {}, its))]);
    items.push([String(message.seq), bubble(message, its === day && before?.author_id === message.author_id)]);
    day = its;
    before = message;
  }
  items.push(...pending(opened.id).map((attempt) => [attempt.key, waitingBubble(attempt)]));
  const focused = document.activeElement?.closest("#messages li")?.dataset.seq;
  showChildren($("messages"), items);
  if (focused && !document.activeElement?.closest("#messages")) list.querySelector(`li[data-seq="${focused}"]`)?.focus();
  if (stay) toEnd();
  else list.scrollTop = list.scrollHeight - height;
  $("to-end").hidden = following;
  if (stay) seen();
}

function bubble(message, follows) {
  const mine = message.author_id === me().id;
  const kind = message.author_id === 0 ? "server" : mine ? "mine" : "";
  const text = message.deleted ? el("p", { className: "gone" }, "Message deleted") : el("p", {}, ...linked(message.text));
  const head = el("small", {}, message.author_id === 0 || mine || follows ? null : el("strong", {}, message.author), " ",
    timeOf(message.created_at), message.edited_at && !message.deleted ? " edited" : null, mine ? receipt(message) : null);
  const item = el("li", { className: `${kind}${follows ? " follows" : ""}`, dataset: { seq: message.seq } }, head, text);
  const possible = message.deleted || message.author_id === 0 ? null : actions(message, mine);
  if (possible) {
    item.tabIndex = 0; // focus shows the actions, by a key or a touch
    item.append(possible);
  }
  return item;
}

/** How many other members have read an own message. */
function receipt(message) {
  const others = opened.members.filter((member) => member.id !== me().id);
  const count = others.filter((member) => (member.read_seq ?? 0) >= message.seq).length;
  if (!count) return " · sent";
  return count === others.length ? " · read" : ` · read by ${count}`;
}

function actions(message, mine) {
  const box = el("span", { className: "actions" });
  const where = `message ${message.seq}`;
  if (mine) box.append(button("Edit", { className: "quiet", ariaLabel: `Edit ${where}` }, () => edit(message)));
  if (mine || opened.owner_id === me().id) {
    box.append(button("Delete", { className: "quiet", ariaLabel: `Delete ${where}` }, () => deleteMessage(opened, message)));
  }
  return box.childElementCount ? box : null;
}

function waitingBubble(attempt) {
  const words = { sending: "sending …", waiting: "no answer yet, trying again …", failed: `not sent: ${attempt.reason}` };
  const item = el("li", { className: "mine", dataset: { state: attempt.state, key: attempt.key } },
    el("small", {}, words[attempt.state]), el("p", {}, ...linked(attempt.text)));
  if (attempt.state === "failed") {
    item.append(el("span", { className: "actions always" },
      button("Send again", { className: "quiet" }, () => retry(attempt)),
      button("Discard", { className: "quiet" }, () => discard(attempt))));
  }
  return item;
}

function isTyping(user) {
  if (user === me().id) return;
  clearTimeout(typing.get(user));
  typing.set(user, setTimeout(() => {
    typing.delete(user);
    drawTyping();
  }, 5000));
  drawTyping();
}

function drawTyping() {
  const names = opened?.members.filter((member) => typing.has(member.id)).map((member) => member.name) ?? [];
  $("typing").textContent = names.length ? `${names.join(" and ")} ${names.length === 1 ? "is" : "are"} typing …` : "";
}
