// What this page knows of the user's groups and their messages. The server numbers
// the changes of each group 1, 2, 3 …; the model applies them in order, ignores those
// it has, and fetches what is missing.

import { ask, me, pause, retriable } from "./api.js";

const pageSize = 50;

/** Groups by ID. */
export const groups = new Map();

/**
 * Dispatches "groups" when the list changed, "group" with the detail {id, known}
 * when a group or its messages changed, and "left" with {id}.
 */
export const model = new EventTarget();

const tell = (type, detail) => model.dispatchEvent(new CustomEvent(type, { detail }));

/** The number of messages that the user has not read. */
export const unread = (group) => Math.max(0, group.last_seq - group.read_seq);

/** The groups, the most recently active first. */
export function byActivity() {
  const at = (group) => group.last_message?.created_at ?? group.created_at;
  return [...groups.values()].sort((a, b) => at(b).localeCompare(at(a)));
}

/** Loads the list of groups. */
export async function loadGroups() {
  const { groups: listed } = await ask("GET", "/v1/groups");
  const ids = new Set(listed.map((group) => group.id));
  for (const id of groups.keys()) if (!ids.has(id)) remove(id);
  for (const group of listed) merge(group);
  tell("groups");
}

function merge(listed) {
  const group = groups.get(listed.id);
  if (!group) {
    groups.set(listed.id, { messages: new Map(), oldest: null, ...listed, known: listed.last_change });
    return;
  }
  group.read_seq = Math.max(group.read_seq, listed.read_seq);
  if (listed.last_change < group.known) return; // pushes have overtaken this answer
  const { known, read_seq } = group;
  Object.assign(group, listed, { read_seq });
  // Messages are only loaded for groups that were opened; the others have nothing to fetch.
  if (group.oldest === null) group.known = listed.last_change;
  else if (known < listed.last_change) catchUp(group, listed.last_change);
}

function remove(id) {
  groups.delete(id);
  tell("left", { id });
}

/** Applies a frame that the server pushed. */
export function apply(push) {
  const group = groups.get(push.group);
  if (push.push === "read") read(group, push);
  if (push.push === "gap" && group?.known < push.change) catchUp(group, push.change);
  if (push.push !== "message" && push.push !== "group") return;
  if (!group) {
    loadGroups().catch(() => {}); // the next connection loads them again
    return;
  }
  if (push.push === "group" && push.removed?.includes(me().id)) {
    remove(group.id);
    tell("groups");
    return;
  }
  if (push.change <= group.known) return;
  if (push.change > group.known + 1) {
    catchUp(group, push.change);
    return;
  }
  group.known = push.change;
  if (push.push === "message") put(group, push.message);
  else describe(group, push.detail);
  tell("group", { id: group.id });
  tell("groups");
}

/** Takes over the fields of a group that the server described. */
function describe(group, { name, owner_id, members }) {
  Object.assign(group, { name, owner_id, members });
}

function read(group, { user, seq }) {
  if (!group) return;
  const member = group.members.find((each) => each.id === user);
  if (member) member.read_seq = Math.max(member.read_seq ?? 0, seq);
  if (user === me().id) group.read_seq = Math.max(group.read_seq, seq);
  tell("group", { id: group.id });
  tell("groups");
}

/** Stores a message, unless a later state of it is known. */
function put(group, message) {
  const old = group.messages.get(message.seq);
  if (group.oldest !== null && message.seq >= group.oldest && !(old?.change > message.change)) {
    group.messages.set(message.seq, message);
  }
  if (message.seq >= group.last_seq) {
    group.last_seq = message.seq;
    group.last_message = message;
  }
  if (message.author_id === me().id) group.read_seq = Math.max(group.read_seq, message.seq);
}

/** Stores a message that an answer of the server contained. Its push may come later. */
export function putAnswer(message) {
  const group = groups.get(message.group_id);
  if (!group) return;
  put(group, message);
  tell("group", { id: group.id });
  tell("groups");
}

/** Fetches the changes of a group after those that are known, up to a change at least. */
export function catchUp(group, change) {
  group.wanted = Math.max(group.wanted ?? 0, change);
  group.catching ??= fetchWanted(group).finally(() => {
    group.catching = null;
  });
  return group.catching;
}

async function fetchWanted(group) {
  try {
    // An answer that was on its way may be older than a change that was announced meanwhile.
    for (let tries = 0; tries < 3 && group.known < group.wanted; tries++) await fetchChanges(group);
  } catch (problem) {
    if (!retriable(problem)) return; // for example, the user was removed
  }
  if (group.known < group.wanted) pause(2).then(() => groups.get(group.id) === group && catchUp(group, group.wanted));
}

/** Fetches changes. They count as known when all requests have been answered. */
async function fetchChanges(group) {
  let { known } = group;
  if (group.oldest !== null) { // messages are shown
    for (let more = true; more;) {
      const page = await ask("GET", `/v1/groups/${group.id}/messages?changed_after=${known}&limit=200`);
      for (const message of page.messages) put(group, message);
      more = page.messages.length === 200;
      known = more ? page.messages.at(-1).change : page.change;
    }
    tell("group", { id: group.id });
  }
  await refresh(group);
  group.known = Math.max(group.known, known);
}

/** Fetches name, owner and members of a group, and its last message. */
async function refresh(group) {
  const fresh = await ask("GET", `/v1/groups/${group.id}`);
  if (fresh.last_change >= group.known) describe(group, fresh);
  if (fresh.last_message) put(group, fresh.last_message);
  if (group.oldest === null) group.known = Math.max(group.known, fresh.last_change);
  tell("group", { id: group.id });
  tell("groups");
}

/** Loads the newest messages of a group when it is opened for the first time. */
export function openMessages(group) {
  group.opening ??= loadNewest(group).finally(() => {
    group.opening = null;
  });
  return group.opening;
}

async function loadNewest(group) {
  if (group.oldest !== null) return;
  const page = await ask("GET", `/v1/groups/${group.id}/messages?limit=${pageSize}`);
  group.oldest = page.messages[0]?.seq ?? 1;
  for (const message of page.messages) put(group, message);
  tell("group", { id: group.id });
  // Changes were pushed while the page was read, or the page has changes that were not pushed yet.
  const { known } = group;
  group.known = Math.min(known, page.change);
  if (known !== page.change) await catchUp(group, Math.max(known, page.change));
}

/** Loads the page of messages before those that are loaded. */
export async function loadOlder(group) {
  if (group.oldest === null || group.oldest <= 1 || group.loading) return;
  group.loading = true;
  try {
    const page = await ask("GET", `/v1/groups/${group.id}/messages?before=${group.oldest}&limit=${pageSize}`);
    group.oldest = page.messages[0]?.seq ?? 1;
    for (const message of page.messages) put(group, message);
  } finally {
    group.loading = false;
  }
  tell("group", { id: group.id, older: true });
}

/** Marks all messages of a group as read, here and on the server. */
export async function markRead(group) {
  const seq = group.last_seq;
  if (seq <= group.read_seq) return;
  group.read_seq = seq;
  tell("groups");
  await ask("PUT", `/v1/groups/${group.id}/read`, { body: { seq } });
}
