// Small helpers for the pages.

/** The element with an id. */
export const $ = (id) => document.getElementById(id);

/** A new element with properties and children. Strings become text, never HTML. */
export function el(name, { dataset, aria, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  Object.assign(element.dataset, dataset);
  for (const [key, value] of Object.entries(aria ?? {})) element.setAttribute(`aria-${key}`, value);
  element.append(...children.filter((child) => child != null));
  return element;
}

/** Shows a line in a status element; kind is "" or "bad". */
export function say(element, text, kind = "") {
  element.textContent = text;
  element.dataset.kind = kind;
}

/** A button that calls fn, and is disabled until fn is done. */
export function button(text, properties, fn) {
  const made = el("button", { type: "button", ...properties }, text);
  made.addEventListener("click", async () => {
    made.disabled = true;
    try {
      await fn();
    } finally {
      made.disabled = false;
    }
  });
  return made;
}

/** Opens a dialog; a click beside it or on a button with data-close closes it. */
export function openDialog(dialog) {
  if (!dialog.dataset.ready) {
    dialog.dataset.ready = "yes";
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
    });
  }
  dialog.showModal();
}

/**
 * Shows elements, given as [key, element], as the children of a parent. A child that would look the same
 * is kept, so that focus, selected text and a click that has begun are not lost.
 */
export function show(parent, elements) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const now = elements.map(([key, made]) => {
    const look = made.outerHTML;
    const kept = old.get(key);
    if (kept?.look === look) return kept;
    made.dataset.key = key;
    made.look = look;
    return made;
  });
  const stays = new Set(now);
  for (const child of old.values()) if (!stays.has(child)) child.remove();
  now.forEach((child, i) => parent.children[i] === child || parent.insertBefore(child, parent.children[i] ?? null));
}
