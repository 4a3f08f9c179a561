// Small helpers for the page.

/** The element with an id. */
export const $ = (id) => document.getElementById(id);

/** A new element with properties and children. Text stays text. */
export function el(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** Shows a line in a status element; bad ones are marked. */
export function say(element, text, kind = "") {
  element.textContent = text;
  element.dataset.kind = kind;
}

/** "2, 3" as [2, 3]. What is not a number is left for the server to refuse. */
export function numbers(text) {
  return text.split(/[\s,]+/).filter(Boolean).map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}
