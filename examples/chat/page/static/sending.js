// Messages on their way: each is stored with its key until the server has answered,
// and retried until then. Pages that open later continue what this one leaves.

import { me, sentence, settle } from "./api.js";
import { begin, finish, unfinished } from "./attempts.js";
import { model, putAnswer } from "./model.js";

/** Attempts by key: {key, group, text, at, state, reason}; state is "sending", "waiting" or "failed". */
const attempts = new Map();

const tell = (attempt) => model.dispatchEvent(new CustomEvent("group", { detail: { id: attempt.group } }));

/** The messages of a group that have no answer, oldest first. */
export const pending = (id) => [...attempts.values()].filter((attempt) => attempt.group === id);

/** Sends a message to a group. */
export function sendMessage(group, text) {
  run(begin("message", { group, text }));
}

/** Continues what has no answer yet. */
export function continueSending() {
  for (const attempt of unfinished("message")) if (!attempts.has(attempt.key)) run(attempt);
}

/** Forgets all messages in memory, when the user signs out; they stay stored. */
export function stopSending() {
  attempts.clear();
}

async function run(attempt) {
  attempts.set(attempt.key, attempt);
  const to = me().id;
  const path = `/v1/groups/${attempt.group}/messages`;
  const answer = await settle("POST", path, { body: { text: attempt.text }, key: attempt.key }, (state) => {
    attempt.state = state === "asking" ? "sending" : "waiting";
    tell(attempt);
  });
  if (me()?.id !== to) return; // it stays stored for its user
  if (answer.status === 401) {
    attempts.delete(attempt.key);
    return;
  }
  if (answer.ok) {
    finish(attempt);
    attempts.delete(attempt.key);
    putAnswer(answer.value);
  } else {
    attempt.state = "failed";
    attempt.reason = sentence(answer.value);
  }
  tell(attempt);
}

/** Sends a refused message again, as a new message with a new key. */
export function retry(attempt) {
  discard(attempt);
  sendMessage(attempt.group, attempt.text);
}

/** Removes a refused message. */
export function discard(attempt) {
  finish(attempt);
  attempts.delete(attempt.key);
  tell(attempt);
}
