"use strict";
// Search: the index is a script, which is loaded when the field is used first.
const { root, copy, copied, none } = document.body.dataset;
const box = document.querySelector(".search");
const field = box.querySelector("input");
const list = document.getElementById("found");
let index = null;
box.hidden = false;

window.semelSearch = (entries) => {
  index = entries.map((e) => ({ ...e, low: e.t.toLowerCase(), head: `${e.p} ${e.h}`.toLowerCase() }));
  show();
};

field.addEventListener("focus", () => {
  const script = document.createElement("script");
  script.src = `${root}search.${document.documentElement.lang}.js`;
  document.head.append(script);
}, { once: true });
field.addEventListener("input", show);
box.addEventListener("keydown", (e) => {
  const links = [...list.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (e.key === "Escape") {
    field.value = "";
    show();
    field.focus();
  } else if (e.key === "ArrowDown" && links.length > 0) {
    links[Math.min(at + 1, links.length - 1)].focus();
    e.preventDefault();
  } else if (e.key === "ArrowUp" && at >= 0) {
    (at === 0 ? field : links[at - 1]).focus();
    e.preventDefault();
  } else if (e.key === "Enter" && at < 0 && links.length > 0) {
    links[0].click();
  }
});
document.addEventListener("click", (e) => {
  if (!box.contains(e.target)) list.hidden = true;
});

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  list.hidden = words.length === 0 || index === null;
  if (list.hidden) return;
  const found = index
    .map((e) => ({ e, score: score(e, words) }))
    .filter((r) => r.score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 20);
  list.replaceChildren(...found.map((r) => row(r.e, words)));
  if (found.length === 0) {
    const li = document.createElement("li");
    li.textContent = none;
    list.append(li);
  }
}

// Each word must occur. A heading counts more than the text, and a whole phrase more than
// its words. Decisions explain the inside, and come last.
function score(e, words) {
  let sum = 0;
  for (const w of words) {
    const inHead = e.head.includes(w), times = e.low.split(w).length - 1;
    if (!inHead && times === 0) return 0;
    sum += (inHead ? 20 : 0) + Math.min(times, 5);
  }
  if (words.length > 1 && e.low.includes(words.join(" "))) sum += 15;
  return e.l.startsWith("docs/decisions/") ? sum / 10 : sum;
}

function row(e, words) {
  const li = document.createElement("li"), a = document.createElement("a");
  a.href = root + e.l;
  const title = document.createElement("b"), text = document.createElement("small");
  title.textContent = e.h === e.p ? e.p : `${e.p} › ${e.h}`;
  const at = Math.max(0, Math.min(...words.map((w) => e.low.indexOf(w)).filter((i) => i >= 0).concat(e.t.length)));
  const from = at < e.t.length ? Math.max(0, at - 40) : 0;
  const piece = e.t.slice(from, from + 160);
  let rest = 0;
  const word = words.find((w) => piece.toLowerCase().includes(w));
  if (word) {
    const i = piece.toLowerCase().indexOf(word), mark = document.createElement("mark");
    mark.textContent = piece.slice(i, i + word.length);
    text.append((from > 0 ? "…" : "") + piece.slice(0, i), mark);
    rest = i + word.length;
  }
  text.append(piece.slice(rest) + (from + 160 < e.t.length ? "…" : ""));
  a.append(title, text);
  a.addEventListener("click", () => { list.hidden = true; });
  li.append(a);
  return li;
}

// A button that copies code. Of a session at the console it copies the commands.
for (const block of document.querySelectorAll(".code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = copy;
  button.addEventListener("click", async () => {
    let text = block.querySelector("pre").textContent;
    if (block.dataset.language === "console") {
      text = text.split("\n").filter((l) => l.startsWith("$ ")).map((l) => l.slice(2) + "\n").join("");
    }
    await navigator.clipboard.writeText(text);
    button.textContent = copied;
  });
  block.append(button);
}
