// The counters of the overview, as they change. Everything else works without scripts.
"use strict";
if (document.querySelector("[data-live]") && "EventSource" in window) {
  const source = new EventSource("events" + location.search);
  source.onmessage = (message) => {
    for (const [name, text] of Object.entries(JSON.parse(message.data))) {
      const shown = document.querySelector(`[data-live="${name}"]`);
      if (shown && text && shown.textContent !== text) shown.textContent = text;
    }
  };
}
