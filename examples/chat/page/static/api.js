// Talking to the server: one request, and one request asked until it is settled.

const session = "semel-chat.session";

/** The signed-in user {id, name, token}, or null. */
export function me() {
  return JSON.parse(localStorage.getItem(session) ?? "null");
}

/** Remembers who is signed in; null forgets them. */
export function remember(user) {
  if (user) localStorage.setItem(session, JSON.stringify(user));
  else localStorage.removeItem(session);
}

/**
 * Sends one request. Resolves with {status, ok, value, replayed, retryAfter},
 * whatever the status; rejects when there was no answer.
 */
export async function send(method, path, { body, key } = {}) {
  const headers = { Accept: "application/json" };
  const user = me();
  if (user) headers.Authorization = `Bearer ${user.token}`;
  if (key) headers["Idempotency-Key"] = `"${key}"`;
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method,
    headers,
    body: body && JSON.stringify(body),
    // A server that hangs is asked again, with the same key.
    signal: AbortSignal.timeout(30_000),
  });
  return {
    status: response.status,
    ok: response.ok,
    value: response.status === 204 ? null : await response.json(),
    replayed: response.headers.get("Idempotent-Replayed") === "true",
    retryAfter: Number(response.headers.get("Retry-After")) || 0,
  };
}

/** Sends one request and resolves with its value; rejects with a sentence to show. */
export async function ask(method, path, options) {
  const answer = await send(method, path, options);
  if (!answer.ok) throw new Error(sentence(answer.value));
  return answer.value;
}

/** What a problem says, with the field it names. */
export function sentence(problem) {
  const text = problem.detail || problem.title || "The server refused.";
  return problem.field ? `${text} (${problem.field})` : text;
}

/** Whether asking again with the same key can lead to another answer. */
function open(answer) {
  if (answer.status >= 500) return true;
  if (answer.status === 409) return ["in_progress", "outcome_unknown"].includes(answer.value.code);
  return [408, 425, 429].includes(answer.status);
}

/** What an answer that is not the last one means. */
function meaning(answer) {
  if (answer.status !== 409) return "away";
  return answer.value.code === "in_progress" ? "progress" : "doubt";
}

const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

/**
 * Sends a request until its answer is the last one, and resolves with that.
 * report is told "asking", "progress", "doubt" or "away", and how many tries
 * there were. The key makes it safe: whatever happened to a try, the next one
 * finds out.
 */
export async function settle(method, path, options, report = () => {}) {
  for (let tries = 1; ; tries++) {
    if (tries === 1) report("asking", tries);
    let wait = Math.min(tries, 3);
    try {
      const answer = await send(method, path, options);
      if (!open(answer)) return { ...answer, tries };
      report(meaning(answer), tries);
      wait = answer.retryAfter || wait;
    } catch {
      report("away", tries);
    }
    // A little apart, so that many who wait do not come back as one.
    await pause(wait + Math.random() * 0.3);
  }
}
