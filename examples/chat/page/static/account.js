// Signing up, signing in and out, and the devices of the account.

import { ask, forget, me, remember, sentence, settle } from "./api.js";
import { newKey } from "./attempts.js";
import { $, button, el, openDialog, say } from "./dom.js";
import { briefly } from "./text.js";

/** The browser's name in the list of devices. */
function device() {
  const { userAgent } = navigator;
  const browser = [["Firefox", /Firefox\//], ["Edge", /Edg\//], ["Chrome", /Chrom(e|ium)\//], ["Safari", /Safari\//]]
    .find(([, sign]) => sign.test(userAgent))?.[0] ?? "Browser";
  const system = [["Android", /Android/], ["iOS", /iPhone|iPad/], ["Windows", /Windows/], ["macOS", /Mac OS/], ["Linux", /Linux/]]
    .find(([, sign]) => sign.test(userAgent))?.[0];
  return system ? `${browser} on ${system}` : browser;
}

async function signIn(name, password) {
  const { token, user, session } = await ask("POST", "/v1/sessions", { body: { name, password, device: device() } });
  remember({ ...user, token, session: session.id });
}

// A sign-up without an answer: its key and name, for this tab. The password is not stored. A repeated
// sign-up with the same name has the same key, also after a reload of the page.
const signingUp = "semel-chat.sign-up";

async function signUp(name, password) {
  const stored = JSON.parse(sessionStorage.getItem(signingUp) ?? "null");
  const key = stored?.name === name ? stored.key : newKey();
  sessionStorage.setItem(signingUp, JSON.stringify({ key, name }));
  const status = $("sign-in-status");
  const answer = await settle("POST", "/v1/users", { body: { name, password }, key }, (state) => {
    say(status, state === "asking" ? "Creating the account …" : "No answer yet. Trying again with the same key …");
  });
  if (answer.ok) await signIn(name, password);
  sessionStorage.removeItem(signingUp);
  if (!answer.ok) throw new Error(sentence(answer.value));
}

/** Makes the sign-in form work. started is called when a user is signed in. */
export function startAccount(started) {
  const form = $("sign-in-form");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const status = $("sign-in-status");
    const name = $("sign-in-name").value.trim();
    const password = $("sign-in-password").value;
    for (const each of form.querySelectorAll("button")) each.disabled = true;
    say(status, "");
    try {
      await (event.submitter === $("sign-up-button") ? signUp : signIn)(name, password);
      form.reset();
      say(status, "");
      await started();
    } catch (problem) {
      say(status, problem.message, "bad");
      $("sign-in-name").focus();
    } finally {
      for (const each of form.querySelectorAll("button")) each.disabled = false;
    }
  });
  $("sign-out").addEventListener("click", async () => {
    forget();
    await ask("DELETE", "/v1/sessions/current").catch(() => {}); // without the server the token expires by itself
    location.assign("/");
  });
  $("show-devices").addEventListener("click", showDevices);
}

async function showDevices() {
  openDialog($("devices"));
  const status = $("devices-status");
  say(status, "");
  try {
    const { sessions } = await ask("GET", "/v1/sessions");
    $("devices-list").replaceChildren(...sessions.map((session) => {
      const own = session.id === me().session;
      const line = el("li", {},
        el("span", { className: "grow" }, session.device || "Unknown device", own ? " (this one)" : "",
          el("small", {}, "signed in ", briefly(session.created_at))));
      if (!own) {
        line.append(button("Sign out", { className: "quiet" }, async () => {
          await ask("DELETE", `/v1/sessions/${session.id}`)
            .then(() => line.remove(), (problem) => say(status, problem.message, "bad"));
        }));
      }
      return line;
    }));
  } catch (problem) {
    say(status, problem.message, "bad");
  }
}
