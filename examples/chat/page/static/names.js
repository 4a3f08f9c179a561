// Names of users by their numbers, asked for once.

import { ask } from "./api.js";

const known = new Map();

/** Resolves with the name of a user, or with their number when there is none. */
export function nameOf(id) {
  if (!known.has(id)) {
    known.set(id, ask("GET", `/v1/users/${id}`).then((user) => user.name, () => {
      known.delete(id);
      return `number ${id}`;
    }));
  }
  return known.get(id);
}
