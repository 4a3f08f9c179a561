// The connection on which the server pushes changes: a WebSocket, or server-sent
// events where a WebSocket cannot be opened. Delivery is best effort: after each
// connection, and when a change number is missing, the model fetches what it lacks.

import { ask, me } from "./api.js";
import { apply, byActivity, catchUp, groups, loadGroups, model } from "./model.js";

/**
 * Dispatches "state" when the connection opened or closed, "typing" with {group,
 * user}, and "presence".
 */
export const live = new EventTarget();

/** "connecting", "open" or "closed". */
export let state = "closed";

/** Users by ID: whether they are connected. */
export const online = new Map();

const longest = 20_000; // milliseconds between two attempts to connect
const mostFollowed = 100; // groups of one stream of events
const listEvery = 30_000; // milliseconds, if there are more groups than a stream follows

let socket = null;
let source = null;
let opening = false; // a connection is being opened
let failures = 0;
let timer = 0;
let lastID = 0;
let waiting = new Map();

function become(next) {
  if (state === next) return;
  state = next;
  live.dispatchEvent(new Event("state"));
}

/** Connects, and reconnects as long as the page is open. */
export function connect() {
  clearTimeout(timer);
  if (socket || source || opening || !me()) return;
  if (state !== "open") become("connecting");
  // After two sockets that did not open, a proxy may be in the way.
  opening = true;
  (failures > 1 && failures % 2 === 0 ? openEvents() : openSocket()).finally(() => { opening = false; }).catch(() => lost());
}

/** Connects again after a delay that grows, with a random part. */
function lost(delay) {
  socket = source = null;
  for (const { reject } of waiting.values()) reject(new Error("The connection was lost."));
  waiting = new Map();
  become("closed");
  failures++;
  const wait = delay ?? Math.min(longest, 500 * 2 ** Math.min(failures, 6));
  timer = setTimeout(connect, wait * (0.5 + Math.random() / 2));
}

async function ticket() {
  return (await ask("POST", "/v1/tickets")).ticket;
}

async function openSocket() {
  const address = new URL("/v1/ws", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  address.searchParams.set("ticket", await ticket()); // the server answers it as "hello"
  const opened = new WebSocket(address, "chat.v1.json");
  socket = opened;
  const greeted = new Promise((resolve, reject) => waiting.set("hello", { resolve, reject }));
  greeted.catch(() => {}); // a socket that does not open is reported by "close"
  let reconnectAfter;
  opened.addEventListener("open", async () => {
    try {
      const hello = await greeted;
      beat(opened, hello.heartbeat_ms);
      await ready();
    } catch {
      opened.close();
    }
  });
  opened.addEventListener("message", ({ data }) => {
    for (const line of data.split("\n")) {
      const frame = JSON.parse(line);
      if (frame.push === "bye") reconnectAfter = frame.reconnect_after_ms;
      else if (frame.push) receive(frame);
      else answer(frame);
    }
  });
  opened.addEventListener("close", () => socket === opened && lost(reconnectAfter));
}

/** Answers arrive in any order; an unanswered heartbeat closes the socket. */
function beat(opened, every) {
  const timer = setInterval(() => {
    if (socket !== opened) {
      clearInterval(timer);
      return;
    }
    const slow = setTimeout(() => opened.close(), every);
    request("ping", {}).then(() => clearTimeout(slow), () => clearTimeout(slow));
  }, every);
}

async function openEvents() {
  await loadGroups();
  const address = new URL("/v1/events", location.href);
  address.searchParams.set("ticket", await ticket());
  for (const group of byActivity().slice(0, mostFollowed)) address.searchParams.append("group", `${group.id}:${group.known}`);
  const opened = new EventSource(address);
  source = opened;
  for (const group of groups.values()) group.subscribed = opened;
  opened.addEventListener("open", () => {
    failures = 0;
    become("open");
  });
  opened.addEventListener("message", ({ data }) => receive(JSON.parse(data)));
  opened.addEventListener("error", () => {
    // The ticket is used up, so the browser must not reconnect by itself.
    opened.close();
    if (source === opened) lost();
  });
}

/** Subscribes to all groups, and fetches what happened meanwhile. */
async function ready() {
  await loadGroups();
  for (const group of groups.values()) await subscribe(group);
  await watch();
  failures = 0;
  become("open");
  followGroups(); // the user may have been added to a group meanwhile
}

async function subscribe(group) {
  group.subscribed = socket;
  const ok = await request("subscribe", { group: group.id, after: group.known });
  if (ok.change > group.known) await catchUp(group, ok.change);
}

let watched = "";

/** The members of all groups, as many as the server lets a client follow. */
const people = () => [...new Set([...groups.values()].flatMap((group) => group.members.map((member) => member.id)))].slice(0, 500);

/** Follows whether the members of all groups are connected. */
async function watch() {
  const users = people();
  watched = users.join();
  const { users: list } = await request("presence", { users });
  for (const { user, online: is } of list) online.set(user, is);
  live.dispatchEvent(new Event("presence"));
}

model.addEventListener("groups", followGroups);

/** Subscribes to new groups, and follows new members. */
function followGroups() {
  if (state !== "open") return;
  if (source && [...groups.values()].some((group) => group.subscribed !== source)) reopenEvents();
  if (!socket) return;
  for (const group of groups.values()) if (group.subscribed !== socket) subscribe(group).catch(() => again(group));
  if (people().join() !== watched) watch().catch(() => {});
}

/** Subscribes to a group later, after an error of the server. */
function again(group) {
  group.subscribed = null;
  setTimeout(followGroups, 1000);
}

/** Opens another stream of events, which has all groups. */
function reopenEvents() {
  source.close();
  source = null;
  openEvents().catch(() => lost());
}

/** Fetches what may have been lost, at a random time so that all clients do not do so at once. */
function resync(within) {
  setTimeout(() => {
    if (source) reopenEvents();
    else if (socket) ready().catch(() => socket?.close());
  }, Math.random() * within);
}

function receive(push) {
  switch (push.push) {
    case "typing":
      live.dispatchEvent(new CustomEvent("typing", { detail: push }));
      break;
    case "presence":
      online.set(push.user, push.online);
      live.dispatchEvent(new Event("presence"));
      break;
    case "resync":
      resync(push.within_ms);
      break;
    case "subscribed":
      if (push.err?.temporary) setTimeout(() => source && reopenEvents(), 1000);
      else if (groups.get(push.group)?.known < push.change) catchUp(groups.get(push.group), push.change);
      break;
    case "hello": // of a stream of events: the user may have been added to a group before it began
      loadGroups().catch(() => {});
      break;
    default:
      apply(push);
  }
}

/** Sends a frame over the socket and resolves with its answer. Above the rate limit it is sent again. */
export async function request(op, fields) {
  for (;;) {
    try {
      return await sendFrame(op, fields);
    } catch (problem) {
      if (problem.code !== "rate_limited") throw problem;
      await new Promise((done) => setTimeout(done, problem.retry_after_ms));
    }
  }
}

function sendFrame(op, fields) {
  if (socket?.readyState !== WebSocket.OPEN) return Promise.reject(new Error("There is no connection."));
  const id = ++lastID;
  socket.send(JSON.stringify({ id, op, ...fields }));
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

function answer({ id, ok, err }) {
  const asked = waiting.get(id);
  waiting.delete(id);
  if (err) asked?.reject(Object.assign(new Error(err.message), err));
  else asked?.resolve(ok);
}

// The list shows what happens in groups that a stream of events does not follow.
setInterval(() => source && groups.size > mostFollowed && loadGroups().catch(() => {}), listEvery);
addEventListener("online", connect);
document.addEventListener("visibilitychange", () => document.hidden || connect());
