// The panel: one creation, requested many times at once with one key.

import { settle, sentence } from "./api.js";
import { $, el, say } from "./dom.js";

const looks = {
  idle: ["○", "not sent"],
  asking: ["◌", "sent"],
  progress: ["◔", "in progress"],
  away: ["⋯", "no server"],
  doubt: ["?", "in doubt"],
  created: ["●", "created"],
  replayed: ["↻", "replayed"],
  refused: ["✕", "refused"],
};
const counted = ["created", "replayed", "progress", "asking", "away", "doubt", "refused"];
const size = 50;

/** Draws the tiles before anything was sent. */
export function drawTiles() {
  $("tiles").replaceChildren(...Array.from({ length: size }, (_, i) => el("li", { className: "tile" },
    el("span", { className: "sign", ariaHidden: "true" }), el("span", { className: "number" }, String(i + 1)),
    el("span", { className: "state" }), el("span", { className: "time" }))));
  for (const tile of tiles()) paint(tile, "idle", "");
  tally();
}

const tiles = () => [...$("tiles").children];

function paint(tile, state, time) {
  const [sign, word] = looks[state];
  tile.dataset.state = state;
  tile.querySelector(".sign").textContent = sign;
  tile.querySelector(".state").textContent = word;
  tile.querySelector(".time").textContent = time;
}

function tally() {
  const count = Object.groupBy(tiles(), (tile) => tile.dataset.state);
  $("tally").replaceChildren(...counted.map((state) => {
    const n = count[state]?.length ?? 0;
    const pair = el("div", { className: n ? "" : "none" }, el("dt", {}, looks[state][1]), el("dd", {}, String(n)));
    pair.dataset.state = state;
    return pair;
  }));
}

/**
 * Sends the request once for each tile, at the same time, each until its answer
 * is final, and resolves with one of the answers. The browser has only a few
 * connections, so most requests wait for one.
 */
export async function storm(attempt, request, refresh) {
  drawTiles();
  $("group-count-before").textContent = attempt.before;
  $("group-count-answers").textContent = "–";
  $("storm-key").textContent = `Idempotency-Key: "${attempt.key}"`;
  say($("storm-status"), "Sending …");
  const start = performance.now();
  const asked = tiles().map((tile) => one(tile, start, request));
  Promise.race(asked).then(refresh).catch(() => {}); // the count, after the first answer
  const answers = await Promise.all(asked);
  const ids = new Set(answers.filter((a) => a.ok).map((a) => a.value.id));
  $("group-count-answers").textContent = ids.size;
  await refresh();
  const last = answers.find((a) => a.ok) ?? answers[0];
  say($("storm-status"), last.ok ? "All have their answer." : sentence(last.value), last.ok ? "" : "bad");
  return last;
}

async function one(tile, start, request) {
  const after = (tries) => {
    const seconds = (performance.now() - start) / 1000;
    const time = `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
    return tries > 1 ? `${time} · ${tries}×` : time;
  };
  const show = (state, tries) => {
    paint(tile, state, state === "asking" ? "" : after(tries));
    tally();
  };
  const answer = await settle(...request, show);
  show(answer.ok ? (answer.replayed ? "replayed" : "created") : "refused", answer.tries);
  return answer;
}
