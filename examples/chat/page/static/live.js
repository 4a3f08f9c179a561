// The connection on which the server pushes changes: a WebSocket, or server-sent
// events where a WebSocket cannot be opened. Delivery is best effort: after each
// connection, and when a change number is missing, the model fetches what it lacks.

import { ask, me } from "./api.js";
import { apply, catchUp, groups, loadGroups, model } from "./model.js";

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

let socket = null;
let source = null;
let failures = 0;
let timer = 0;
let lastID = 0;
let waiting = new Map();

function become(next) {
  if (state === next) return;
  state = next;
  live.dispatchEvent(new Event("state"));
}

/** Connects, and reconnects until stop is called. */
export function connect() {
  clearTimeout(timer);
  if (socket || source || !me()) return;
  if (state !== "open") become("connecting");
  // After two sockets that did not open, a proxy may be in the way.
  (failures > 1 && failures % 2 === 0 ? openEvents() : openSocket()).catch(() => lost());
}

/** Disconnects, when the user signs out. */
export function stop() {
  clearTimeout(timer);
  socket?.close();
  source?.close();
  socket = source = null;
  become("closed");
}

/** Connects again after a delay that grows, with a random part. */
function lost(delay) {
  socket = source = null;
  for (const { reject } of waiting.values()) reject(new Error("The connection was lost."));
  waiting = new Map();
  become("closed");
  if (!me()) return;
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
  const secret = await ticket();
  const opened = new WebSocket(address, "chat.v1.json");
  socket = opened;
  let reconnectAfter;
  opened.addEventListener("open", async () => {
    try {
      const hello = await request("hello", { ticket: secret });
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
  const opened = new EventSource(`/v1/events?ticket=${encodeURIComponent(await ticket())}`);
  source = opened;
  opened.addEventListener("open", () => ready().catch(() => {}));
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
  if (socket) await Promise.all([...groups.values()].map(subscribe));
  failures = 0;
  become("open");
}

async function subscribe(group) {
  group.subscribed = socket;
  const ok = await request("subscribe", { group: group.id, after: group.known });
  if (ok.change > group.known) await catchUp(group);
}

// Groups that the user was added to meanwhile.
model.addEventListener("groups", () => {
  if (!socket || state !== "open") return;
  for (const group of groups.values()) if (group.subscribed !== socket) subscribe(group).catch(() => {});
});

function receive(push) {
  switch (push.push) {
    case "typing":
      live.dispatchEvent(new CustomEvent("typing", { detail: push }));
      break;
    case "presence":
      online.set(push.user, push.online);
      live.dispatchEvent(new Event("presence"));
      break;
    default:
      apply(push);
  }
}

/** Sends a frame over the socket and resolves with its answer. */
export function request(op, fields) {
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

addEventListener("online", connect);
document.addEventListener("visibilitychange", () => document.hidden || connect());
