"use strict";
// Times as people read them. Moments are Unix seconds, Slack's `ts`, or ISO 8601.

function moment(value) {
  if (value instanceof Date) return value;
  if (typeof value === "number" || /^\d+(\.\d+)?$/.test(value ?? ""))
    return new Date(Number(value) * 1000);
  return new Date(value);
}

function format(value, options) {
  const at = moment(value);
  return Number.isNaN(at.getTime())
    ? String(value ?? "")
    : new Intl.DateTimeFormat("en-GB", options).format(at);
}

export const clock = (value) => format(value, { hour: "2-digit", minute: "2-digit" });
export const seconds = (value) =>
  format(value, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const full = (value) => format(value, { dateStyle: "full", timeStyle: "medium" });
export const iso = (value) => {
  const at = moment(value);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
};

export function day(value) {
  const at = moment(value);
  const today = new Date();
  const yesterday = new Date(today.getTime() - 86_400_000);
  if (at.toDateString() === today.toDateString()) return "Today";
  if (at.toDateString() === yesterday.toDateString()) return "Yesterday";
  return format(value, { weekday: "long", day: "numeric", month: "long" });
}

function pretty(value, options) {
  const name = day(value);
  return name === "Today" || name === "Yesterday" ? name.toLowerCase() : format(value, options);
}

function ago(value) {
  const gone = Math.round((Date.now() - moment(value).getTime()) / 1000);
  const word = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  for (const [unit, size] of [
    ["day", 86_400],
    ["hour", 3600],
    ["minute", 60],
  ]) {
    if (Math.abs(gone) >= size) return word.format(-Math.round(gone / size), unit);
  }
  return word.format(-gone, "second");
}

const SHORT = { day: "numeric", month: "short", year: "numeric" };
const LONG = { weekday: "long", day: "numeric", month: "long", year: "numeric" };
const PLAIN = { day: "numeric", month: "long", year: "numeric" };
const TOKENS = {
  date_num: (at) => iso(at)?.slice(0, 10) ?? "",
  date: (at) => format(at, PLAIN),
  date_short: (at) => format(at, SHORT),
  date_long: (at) => format(at, LONG),
  date_pretty: (at) => pretty(at, PLAIN),
  date_short_pretty: (at) => pretty(at, SHORT),
  date_long_pretty: (at) => pretty(at, LONG),
  time: clock,
  time_secs: seconds,
  ago,
};

/** Fill Slack's date tokens; an unknown token makes the whole text the fallback, as in Slack. */
export function slackDate(timestamp, pattern, fallback) {
  let known = true;
  const text = pattern.replace(/\{(\w+)\}/g, (_, name) => {
    known = known && Object.hasOwn(TOKENS, name);
    return known ? TOKENS[name](Number(timestamp)) : "";
  });
  return known && text ? text : (fallback ?? String(timestamp));
}
