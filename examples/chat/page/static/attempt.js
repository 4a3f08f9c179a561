// An attempt is one thing the user wants done once. It is written down, with its
// key, before the first request leaves, and crossed out when there is an answer:
// closing the page in between loses nothing, and does nothing twice.

const place = (kind) => `semel-chat.${kind}`;

/** A key for one attempt. */
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  // Pages that are not from https or this machine have no randomUUID.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

/** Writes down a new attempt of a kind and returns it, with its key. */
export function begin(kind, what) {
  const attempt = { key: newKey(), ...what };
  localStorage.setItem(place(kind), JSON.stringify(attempt));
  return attempt;
}

/** The attempt of a kind that has no answer yet, or null. */
export function unfinished(kind) {
  return JSON.parse(localStorage.getItem(place(kind)) ?? "null");
}

/** Crosses out the attempt of a kind. */
export function finish(kind) {
  localStorage.removeItem(place(kind));
}
