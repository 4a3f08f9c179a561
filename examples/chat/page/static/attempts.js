// An attempt is something that the user wants done once. It is stored with its key
// before the first request is sent, and removed when the answer is shown, so that
// closing the page loses nothing. Each attempt has its own entry: two tabs do not
// overwrite each other's.

import { me } from "./api.js";

const prefix = () => `semel-chat.attempt.${me()?.id}.`;

/** A new random key. */
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  // Only pages from https or from this machine have randomUUID.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

/** Stores a new attempt of a kind and returns it, with its key. */
export function begin(kind, what) {
  const attempt = { key: newKey(), kind, at: Date.now(), ...what };
  localStorage.setItem(prefix() + attempt.key, JSON.stringify(attempt));
  return attempt;
}

/** The attempts of a kind without an answer, oldest first. */
export function unfinished(kind) {
  const found = [];
  for (let i = 0; i < localStorage.length; i++) {
    const name = localStorage.key(i);
    if (name.startsWith(prefix())) found.push(JSON.parse(localStorage.getItem(name)));
  }
  return found.filter((attempt) => attempt.kind === kind).sort((a, b) => a.at - b.at);
}

/** Removes an attempt. */
export function finish(attempt) {
  localStorage.removeItem(prefix() + attempt.key);
}
