// Changes of a group: its name and members, and the deletion of messages.

import { ask, me } from "./api.js";
import { $, button, el, openDialog, say } from "./dom.js";
import { live, online } from "./live.js";
import { groups, loadGroups, model, putAnswer } from "./model.js";
import { names, openedID, suggest } from "./sidebar.js";

/** Makes the dialog of the group's details work. */
export function startDetails() {
  $("show-details").addEventListener("click", () => {
    say($("details-status"), "");
    $("rename-name").value = groups.get(openedID()).name;
    draw();
    openDialog($("details"));
  });
  const redraw = () => $("details").open && draw();
  model.addEventListener("group", redraw);
  model.addEventListener("left", () => groups.has(openedID()) || $("details").close());
  live.addEventListener("presence", redraw);
  $("rename-form").addEventListener("submit", (event) => {
    event.preventDefault();
    change("PATCH", "", { name: $("rename-name").value.trim() });
  });
  $("add-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await change("POST", "/members", { member_names: names($("add-names").value) })) $("add-form").reset();
    $("add-names").focus();
  });
  suggest($("add-names"), $("people"));
  $("leave").replaceWith(button("Leave the group", { id: "leave", className: "second" }, async () => {
    if (await confirmed("Leave this group? You will not see its messages any more.", "Leave")) await change("DELETE", "/members/me");
  }));
}

/** Sends a change of the group; the push shows it. Resolves with whether it was made. */
async function change(method, path, body) {
  const status = $("details-status");
  say(status, "");
  try {
    await ask(method, `/v1/groups/${openedID()}${path}`, { body });
    await loadGroups();
    return true;
  } catch (problem) {
    say(status, problem.message, "bad");
    return false;
  }
}

function draw() {
  const group = groups.get(openedID());
  if (!group) return;
  const owns = group.owner_id === me().id;
  $("rename-form").hidden = $("add-form").hidden = !owns;
  $("details-members").replaceChildren(...group.members.map((member) => {
    const notes = [member.id === me().id && "you", member.id === group.owner_id && "owner", online.get(member.id) && "online"];
    const line = el("li", {}, el("span", { className: "grow" }, member.name, el("small", {}, notes.filter(Boolean).join(", "))));
    if (owns && member.id !== me().id) {
      line.append(button("Remove", { className: "quiet", ariaLabel: `Remove ${member.name}` }, async () => {
        if (await confirmed(`Remove ${member.name} from the group?`, "Remove")) await change("DELETE", `/members/${member.id}`);
      }));
    }
    return line;
  }));
}

/** Deletes a message after a confirmation. */
export async function deleteMessage(group, message) {
  if (!await confirmed("Delete this message for all members?", "Delete")) return;
  try {
    const deleted = await ask("DELETE", `/v1/groups/${group.id}/messages/${message.seq}`);
    if (deleted) putAnswer(deleted);
  } catch (problem) {
    say($("talk-status"), problem.message, "bad");
  }
}

/** Asks for a confirmation and resolves with the answer. */
function confirmed(question, action) {
  const dialog = $("confirm");
  $("confirm-question").textContent = question;
  $("confirm-yes").textContent = action;
  openDialog(dialog);
  return new Promise((resolve) => {
    let yes = false;
    const accept = () => {
      yes = true;
      dialog.close();
    };
    $("confirm-yes").addEventListener("click", accept);
    dialog.addEventListener("close", () => {
      $("confirm-yes").removeEventListener("click", accept);
      resolve(yes);
    }, { once: true });
  });
}
