// Replaces the parts of a page that change. Everything else works without scripts.
"use strict";
const address = document.querySelector("main").dataset.events;
let source = null;

// A part with the focus or with selected text stays as it is.
function isUsed(part) {
  const selected = getSelection();
  return part.contains(document.activeElement) || (selected.type === "Range" && selected.containsNode(part, true));
}

function replace(message) {
  const now = new DOMParser().parseFromString(JSON.parse(message.data), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = now.querySelector(`[data-live="${part.dataset.live}"]`);
    if (next && next.outerHTML !== part.outerHTML && !isUsed(part)) part.replaceWith(next);
  }
}

// A hidden tab closes its stream: over HTTP/1.1 a browser opens six connections to a server.
function follow() {
  if (document.hidden) {
    source?.close();
    source = null;
  } else if (!source) {
    source = new EventSource(address);
    source.onmessage = replace;
  }
}

if (address && "EventSource" in window) {
  follow();
  document.addEventListener("visibilitychange", follow);
}
