// The list of groups, and creating one.

import { ask, sentence, settle } from "./api.js";
import { begin, finish, unfinished } from "./attempt.js";
import { $, el, numbers, say } from "./dom.js";
import { openGroup, openedGroup } from "./talk.js";
import { storm } from "./storm.js";

const kind = "creation";

/** Loads the user's groups into the list and returns them. */
export async function loadGroups() {
  const { groups } = await ask("GET", "/v1/groups");
  $("groups").replaceChildren(...groups.map(line));
  $("no-groups").hidden = groups.length > 0;
  $("group-count").textContent = groups.length;
  return groups;
}

function line(group) {
  const people = group.members.length === 1 ? "1 member" : `${group.members.length} members`;
  const button = el("button", { type: "button" }, group.name, el("small", {}, people));
  button.setAttribute("aria-current", String(group.id === openedGroup()));
  button.addEventListener("click", () => show(group).catch((problem) => say($("create-status"), problem.message, "bad")));
  return el("li", {}, button);
}

async function show(group) {
  await openGroup(group);
  await loadGroups();
}

/** Makes the form work, and goes on with a creation that has no answer yet. */
export async function startGroups() {
  $("create-form").addEventListener("submit", (event) => {
    event.preventDefault();
    create(event.submitter === $("create-50") ? 50 : 1);
  });
  const left = unfinished(kind);
  await Promise.all([loadGroups(), left && run(left)]);
}

async function create(copies) {
  busy(true);
  try {
    const before = (await loadGroups()).length;
    await run(begin(kind, {
      body: { name: $("create-name").value.trim(), member_ids: numbers($("create-members").value) },
      copies, before,
    }));
  } catch (problem) {
    busy(false);
    say($("create-status"), problem.message, "bad");
  }
}

/** Carries an attempt to its answer, asking once or many times. */
async function run(attempt) {
  busy(true);
  const status = $("create-status");
  say(status, `Creating “${attempt.body.name}” …`);
  const request = ["POST", "/v1/groups", { body: attempt.body, key: attempt.key }];
  const answer = attempt.copies > 1
    ? await storm(attempt, request, loadGroups)
    : await settle(...request, (state) => say(status, waiting[state]));
  finish(kind);
  busy(false);
  if (!answer.ok) {
    say(status, sentence(answer.value), "bad");
    return;
  }
  $("create-form").reset();
  say(status, `“${answer.value.name}” exists.`);
  await show(answer.value);
}

const waiting = {
  asking: "Asking …",
  progress: "The server is at it. Asking again soon …",
  doubt: "The server does not know whether it was done. Somebody has to look; asking again meanwhile …",
  away: "No answer. Asking again, with the same key …",
};

function busy(is) {
  for (const id of ["create-once", "create-50"]) $(id).disabled = is;
}
