// Texts of messages and times.

import { el } from "./dom.js";

const link = /\bhttps?:\/\/[^\s<>"']+/g;
const trailing = /[.,;:!?)\]}'"]+$/;

/** The nodes of a text: web addresses become links, everything else stays text. */
export function linked(text) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(link)) {
    const address = match[0].replace(trailing, "");
    nodes.push(text.slice(from, match.index));
    nodes.push(el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, address));
    from = match.index + address.length;
  }
  nodes.push(text.slice(from));
  return nodes.filter(Boolean);
}

const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat([], { weekday: "long", day: "numeric", month: "long" });
const dayOfYear = new Intl.DateTimeFormat([], { day: "numeric", month: "long", year: "numeric" });
const short = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat([], { dateStyle: "full", timeStyle: "medium" });

const midnight = (date) => new Date(date).setHours(0, 0, 0, 0);
const daysAgo = (date) => Math.round((midnight(Date.now()) - midnight(date)) / 86_400_000);

/** The day of a time as a heading: "Today", "Yesterday", or the date. */
export function dayOf(date) {
  const ago = daysAgo(date);
  if (ago === 0) return "Today";
  if (ago === 1) return "Yesterday";
  return (date.getFullYear() === new Date().getFullYear() ? day : dayOfYear).format(date);
}

/** A time element that shows the time of day, and the date in its title. */
export function timeOf(text) {
  const date = new Date(text);
  return el("time", { dateTime: text, title: full.format(date) }, clock.format(date));
}

/** A time in a list: the time of today, or the day. */
export function briefly(text) {
  const date = new Date(text);
  const shown = daysAgo(date) === 0 ? clock.format(date) : short.format(date);
  return el("time", { dateTime: text, title: full.format(date) }, shown);
}
