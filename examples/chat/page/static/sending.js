// Messages on their way: each is stored with its key until the server has answered,
// and retried until then. Pages that open later continue what this one leaves.

import { sentence, settle } from "./api.js";
import { begin, finish, unfinished } from "./attempts.js";
import { model, putAnswer } from "./model.js";

/** Attempts by key: {key, group, text, at, state, reason}; state is "sending", "waiting" or "failed". */
const attempts = new Map();

/**
 * By group: a promise that is done when its last message has an answer, or when an operator has to
 * decide about it. The next message waits for it, so messages arrive in the order in which they were written.
 */
const turns = new Map();

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

function run(attempt) {
  attempts.set(attempt.key, attempt);
  attempt.state = "sending";
  tell(attempt);
  const before = turns.get(attempt.group);
  turns.set(attempt.group, new Promise((done) => {
    (before ?? Promise.resolve()).then(() => deliver(attempt, done)).finally(done);
  }));
}

/** Sends a message until it has its answer. done lets the next one of the group begin. */
async function deliver(attempt, done) {
  const path = `/v1/groups/${attempt.group}/messages`;
  const answer = await settle("POST", path, { body: { text: attempt.text }, key: attempt.key }, (state) => {
    attempt.state = state === "asking" ? "sending" : "waiting";
    if (state === "doubt") done();
    tell(attempt);
  });
  if (answer.status === 401) return; // it stays stored for its user
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
