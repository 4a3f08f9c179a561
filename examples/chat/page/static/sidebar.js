// The list of groups, and creating a group.

import { ask, me, sentence, settle } from "./api.js";
import { begin, finish, unfinished } from "./attempts.js";
import { $, el, openDialog, say, show } from "./dom.js";
import { byActivity, groups, loadGroups, model, unread } from "./model.js";
import { briefly } from "./text.js";

/** The ID of the group in the address, or "". */
export const openedID = () => /^#\/g\/([^/]+)/.exec(location.hash)?.[1] ?? "";

/** The address of a group. */
export const addressOf = (id) => `#/g/${encodeURIComponent(id)}`;

/** Makes the list and the dialog work. */
export function startSidebar() {
  model.addEventListener("groups", draw);
  addEventListener("hashchange", draw);
  $("new-group").addEventListener("click", () => openDialog($("create")));
  $("create-form").addEventListener("submit", (event) => {
    event.preventDefault();
    create(begin("group", { body: { name: $("create-name").value.trim(), member_names: names($("create-members").value) } }));
  });
  suggest($("create-members"), $("people"));
}

/** Continues creations that have no answer yet. */
export function continueCreations() {
  for (const attempt of unfinished("group")) create(attempt);
}

/** "Ann, Bob" as ["Ann", "Bob"]. */
export const names = (text) => text.split(",").map((name) => name.trim()).filter(Boolean);

/** Lists users whose names begin with what is typed after the last comma. */
export function suggest(input, list) {
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    const given = input.value.slice(0, input.value.lastIndexOf(",") + 1);
    const prefix = input.value.slice(given.length).trim();
    if (!prefix) return;
    timer = setTimeout(async () => {
      const { users } = await ask("GET", `/v1/users?name=${encodeURIComponent(prefix)}&limit=8`).catch(() => ({ users: [] }));
      list.replaceChildren(...users.filter((user) => user.id !== me()?.id)
        .map((user) => el("option", { value: `${given}${given && " "}${user.name}` })));
    }, 200);
  });
}

async function create(attempt) {
  const status = $("create-status");
  $("create-once").disabled = true;
  const answer = await settle("POST", "/v1/groups", { body: attempt.body, key: attempt.key }, (state) => say(status, waiting[state]));
  finish(attempt);
  $("create-once").disabled = false;
  if (!answer.ok) {
    // The name and the members stay in the form.
    if (!$("create").open) openDialog($("create"));
    say(status, sentence(answer.value), "bad");
    return;
  }
  say(status, "");
  $("create-form").reset();
  $("create").close();
  await loadGroups().catch(() => {});
  location.hash = addressOf(answer.value.id);
}

const waiting = {
  asking: "Creating …",
  progress: "The server is working on it. Trying again soon …",
  doubt: "The server does not know whether the group exists. An operator has to decide; trying again meanwhile …",
  away: "No answer. Trying again with the same key …",
};

function draw() {
  const opened = openedID();
  const focused = document.activeElement?.closest("#groups li")?.dataset.key;
  show($("groups"), byActivity().map((group) => [group.id, line(group, group.id === opened)]));
  if (focused) $("groups").querySelector(`li[data-key="${CSS.escape(focused)}"] a`)?.focus();
  $("no-groups").hidden = groups.size > 0;
  const all = [...groups.values()].reduce((sum, group) => sum + unread(group), 0);
  document.title = all ? `(${all}) Semel chat` : "Semel chat";
}

function line(group, current) {
  const last = group.last_message;
  const count = unread(group);
  const address = el("a", { href: addressOf(group.id) },
    el("span", { className: "name" }, group.name),
    last && briefly(last.created_at),
    el("span", { className: "last" }, last ? preview(last) : `${group.members.length} ${group.members.length === 1 ? "member" : "members"}`),
    count ? el("span", { className: "count" }, String(count), el("span", { className: "unseen" }, " unread")) : null);
  if (current) address.setAttribute("aria-current", "page");
  return el("li", {}, address);
}

function preview(message) {
  if (message.deleted) return "Message deleted";
  if (message.author_id === 0) return message.text;
  return `${message.author_id === me()?.id ? "You" : message.author}: ${message.text}`;
}
