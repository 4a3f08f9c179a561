// Requests to the server: one request, and one request that is retried until it
// has its final answer.

const session = "semel-chat.session";
const stored = () => JSON.parse(localStorage.getItem(session) ?? "null");

// A page has one user until it is loaded again, so work that is under way when the user signs out,
// perhaps in another tab, cannot continue as another user or without one.
let user = stored();
addEventListener("storage", (event) => {
  if (event.key === session) location.reload();
});

/** The signed-in user {id, name, token, session}, or null. */
export const me = () => user;

/** Stores the user who has signed in. */
export function remember(signedIn) {
  user = signedIn;
  localStorage.setItem(session, JSON.stringify(user));
}

/** Signs the user out in this browser; the caller loads the page again. */
export function forget() {
  localStorage.removeItem(session);
}

const reason = "semel-chat.signed-out";

/** Loads the page without a user after the server has refused the token. */
function refused(token) {
  if (stored()?.token !== token) return; // the user has signed out, or signed in again
  forget();
  sessionStorage.setItem(reason, "You were signed out. What you wrote is kept.");
  location.reload();
}

/** Why the page was loaded without a user, or "". The second call returns "". */
export function signedOut() {
  const text = sessionStorage.getItem(reason) ?? "";
  sessionStorage.removeItem(reason);
  return text;
}

/**
 * Sends one request. Resolves with {status, ok, value, replayed, retryAfter} for
 * every status; rejects when there was no answer.
 */
export async function send(method, path, { body, key } = {}) {
  const token = user?.token;
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (key) headers["Idempotency-Key"] = `"${key}"`;
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method,
    headers,
    body: body && JSON.stringify(body),
    // After this the request is retried with the same key.
    signal: AbortSignal.timeout(30_000),
  });
  const text = await response.text();
  const answer = {
    status: response.status,
    ok: response.ok,
    value: text ? JSON.parse(text) : null,
    replayed: response.headers.get("Idempotent-Replayed") === "true",
    retryAfter: Number(response.headers.get("Retry-After")) || 0,
  };
  if (answer.status === 401 && token) refused(token);
  return answer;
}

/** Sends one request and resolves with its value; rejects with a sentence to show. */
export async function ask(method, path, options) {
  const answer = await send(method, path, options);
  if (!answer.ok) throw Object.assign(new Error(sentence(answer.value)), { status: answer.status, code: answer.value?.code });
  return answer.value;
}

/** The text of a problem. */
export function sentence(problem) {
  return problem?.detail || problem?.title || "The server refused the request.";
}

/** Whether the same request can have another answer later. Without a status there was no answer. */
export function retriable({ status = 500, code }) {
  if (status >= 500) return true;
  if (status === 409) return ["in_progress", "outcome_unknown"].includes(code);
  return [408, 425, 429].includes(status);
}

/** The state of a request whose answer is not final. */
function stateOf(answer) {
  if (answer.status !== 409) return "away";
  return answer.value?.code === "in_progress" ? "progress" : "doubt";
}

export const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

/**
 * Retries a request with its key until the answer is final, and resolves with
 * that. report receives "asking", "progress", "doubt" or "away", and the number
 * of tries.
 */
export async function settle(method, path, options, report = () => {}) {
  for (let tries = 1; ; tries++) {
    if (tries === 1) report("asking", tries);
    let wait = Math.min(tries, 3);
    try {
      const answer = await send(method, path, options);
      if (!retriable({ status: answer.status, code: answer.value?.code })) return { ...answer, tries };
      report(stateOf(answer), tries);
      wait = answer.retryAfter || wait;
    } catch {
      report("away", tries);
    }
    // A random part spreads the retries of many clients.
    await pause(wait + Math.random() * 0.3);
  }
}
