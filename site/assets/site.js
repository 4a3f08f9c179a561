"use strict";
// Search: the index is a script, which is loaded when the field is used first.
const { root, copy, copied, none } = document.body.dataset;
const box = document.querySelector(".search");
const field = box.querySelector("input");
const list = document.getElementById("found");
const han = /\p{sc=Han}/u;
// Words of questions that say nothing about the page.
const fillers = new Set("a an and are by can do does for from how i if in is it my of on or the to what when with 的 怎么 如何 什么".split(" "));
let index = null;
box.hidden = false;

window.semelSearch = (pages) => {
  index = indexOf(pages);
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
  list.hidden = field.value.trim() === "" || index === null;
  if (list.hidden) return;
  const { found, marked } = search(field.value);
  list.replaceChildren(...found.slice(0, 20).map((s) => row(s, marked)));
  if (found.length === 0) {
    const li = document.createElement("li");
    li.textContent = none;
    list.append(li);
  }
}

// spans yields the tokens of a text with their places. A word with hyphens is one token
// ("e-mail" is "email"), and its parts are tokens too. Chinese has no spaces between words: its
// tokens are the pairs of neighboring characters.
function* spans(text) {
  for (const { 0: run, index: at } of text.matchAll(/\p{sc=Han}+|(?:(?!\p{sc=Han})[\p{L}\p{N}_])+(?:[-.'’](?:(?!\p{sc=Han})[\p{L}\p{N}_])+)*/gu)) {
    if (han.test(run)) {
      for (let i = 0; i < Math.max(1, run.length - 1); i++) yield [run.slice(i, i + 2), at + i, at + Math.min(i + 2, run.length)];
      continue;
    }
    const low = run.toLowerCase(), parts = low.split(/[-.'’_]/).filter(Boolean);
    yield [parts.join(""), at, at + run.length];
    let from = 0;
    for (const part of parts.length > 1 ? parts : []) {
      from = low.indexOf(part, from);
      yield [part, at + from, at + from + part.length];
      from += part.length;
    }
  }
}

// stem removes common endings of English: "upgrade", "upgraded" and "upgrading" have one stem.
function stem(word) {
  return word.replace(/ies$/, "y")
    .replace(/(?<=[a-z]{3})(?:ations?|ates?|ating|ings?|ed|ers?|es|s)$/, "")
    .replace(/([b-df-hj-np-tv-z])\1$/, "$1")
    .replace(/(?<=[a-z]{3})[ey]$/, "");
}

// indexOf weighs the tokens of each section. A title, an alias of the page or a heading counts
// more than the text, and the text more than code. The first section has the title of its page,
// and answers for the page.
function indexOf(pages) {
  const sections = [], tokens = new Map();
  const add = (id, part, text, weight) => {
    const all = [...spans(text)];
    for (const [token] of all) {
      if (!tokens.has(token)) tokens.set(token, { root: stem(token), places: new Map() });
      const { places } = tokens.get(token);
      if (!places.has(id)) places.set(id, { title: 0, heading: 0, body: 0 });
      const at = places.get(id);
      at[part] = part === "body" ? at.body + weight : Math.max(at[part], weight * (0.5 + 0.5 / all.length));
    }
  };
  for (const page of pages) {
    page.s.forEach((s, i) => {
      const id = sections.push({ ...s, page, low: `${s.h} ${s.t}`.toLowerCase() }) - 1;
      for (const name of [page.p, ...(page.a ?? [])]) add(id, "title", name, i === 0 ? 12 : 2);
      if (i > 0) add(id, "heading", s.h, 7);
      add(id, "body", s.t, 1);
      add(id, "body", s.c ?? "", 0.3);
    });
  }
  return { sections, tokens };
}

// meanings returns the tokens that a word of the query can mean, each with a quality.
function meanings(word) {
  const found = new Map(), own = stem(word);
  for (const [token, { root }] of index.tokens) {
    let quality = 0;
    if (token === word) quality = 1;
    else if (root === own) quality = 0.9;
    else if (token.startsWith(word) && (word.length > 1 || han.test(word))) quality = 0.6;
    else if (token.includes(word) && word.length > 3) quality = 0.2;
    if (quality > 0) found.set(token, quality);
  }
  return found;
}

// wordsOf returns the meanings of each word that is known. For a word with hyphens, these are
// its parts, each of which also means the whole word.
function wordsOf(query) {
  const words = [];
  let end = 0, whole = null;
  for (const [token, from, to] of spans(query)) {
    const means = meanings(token);
    if (from < end && !han.test(token)) { // a part
      if (words.at(-1)?.means === whole) words.pop();
      words.push({ token, means: new Map([...means, ...whole]) });
      continue;
    }
    [end, whole] = [to, means];
    words.push({ token, means });
  }
  const known = words.filter((w) => w.means.size > 0);
  const telling = known.filter((w) => !fillers.has(w.token));
  return telling.length > 0 ? telling : known;
}

// search returns the sections for a query, the best first, and the tokens to mark. Sections
// with all words come first, then sections of pages with all words, then sections with any. A
// rare word counts more than a frequent one. Pages about the inside have a low rank.
function search(query) {
  const words = wordsOf(query), scores = new Map(), ofPage = new Map();
  for (const { token, means } of words) {
    const here = new Map();
    for (const [other, quality] of means) {
      for (const [id, at] of index.tokens.get(other).places) {
        const best = here.get(id) ?? { head: 0, body: 0 };
        best.head = Math.max(best.head, quality * (at.title + at.heading));
        best.body += quality * at.body;
        here.set(id, best);
      }
    }
    const rarity = Math.log(1 + index.sections.length / here.size);
    for (const [id, { head, body }] of here) {
      const s = scores.get(id) ?? { sum: 0, words: new Set() }, { page } = index.sections[id];
      s.sum += rarity * (head + 3 * body / (body + 3));
      s.words.add(token);
      scores.set(id, s);
      ofPage.set(page, (ofPage.get(page) ?? new Set()).add(token));
    }
  }
  const count = new Set(words.map((w) => w.token)).size, phrase = query.trim().toLowerCase(), perPage = new Map();
  const found = [...scores].map(([id, s]) => {
    const section = index.sections[id], { page } = section;
    const tier = (s.words.size === count) + (ofPage.get(page).size === count) - (page.r < 0.3);
    return { section, tier, score: s.sum * page.r * (section.low.includes(phrase) ? 1.3 : 1) };
  }).sort((a, b) => b.tier - a.tier || b.score - a.score).map((f) => f.section).filter(({ page }) => {
    perPage.set(page, (perPage.get(page) ?? 0) + 1);
    return perPage.get(page) <= 4;
  });
  return { found, marked: new Set(words.flatMap((w) => [...w.means.keys()])) };
}

// row shows a section: the text around the first word that was found, with all such words marked.
function row(section, marked) {
  const { page, t: text } = section;
  const hits = [...spans(text)].filter(([token]) => marked.has(token) && !fillers.has(token));
  const from = hits.length > 0 ? Math.max(0, hits[0][1] - 40) : 0, to = from + 160;
  const li = document.createElement("li"), a = document.createElement("a");
  const title = document.createElement("b"), piece = document.createElement("small");
  a.href = `${root}${page.l}#${section.i}`;
  title.textContent = section === page.s[0] || section.h === page.p ? page.p : `${page.p} › ${section.h}`;
  let at = from;
  piece.append(from > 0 ? "…" : "");
  for (const [, start, end] of hits) {
    if (end > to || start < at) continue;
    const mark = document.createElement("mark");
    mark.textContent = text.slice(start, end);
    piece.append(text.slice(at, start), mark);
    at = end;
  }
  piece.append(text.slice(at, to) + (to < text.length ? "…" : ""));
  a.append(title, piece);
  a.addEventListener("click", () => { list.hidden = true; });
  li.append(a);
  return li;
}

// Enter opens and closes the contents on a phone, as the space bar does.
document.getElementById("menu").addEventListener("keydown", (e) => {
  if (e.key === "Enter") e.target.click();
});

// What is wider than the page can be scrolled with the keyboard, too.
function fit(e) {
  if (e.scrollWidth > e.clientWidth) e.tabIndex = 0;
  else e.removeAttribute("tabindex");
}
const resized = new ResizeObserver((all) => all.forEach((r) => fit(r.target)));
for (const e of document.querySelectorAll("main pre, main table, .diagram")) {
  fit(e);
  resized.observe(e);
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
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = copied;
    } catch { // there is no clipboard, or not for this page: the visitor copies the selection
      getSelection().selectAllChildren(block.querySelector("pre"));
    }
  });
  block.querySelector(".bar").append(button);
}

// A click in "On this page" closes the list, which lies above the text.
for (const a of document.querySelectorAll(".onpage a")) {
  a.addEventListener("click", () => { a.closest("details").open = false; });
}
