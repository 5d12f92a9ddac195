"use strict";
// Slack's mrkdwn as DOM nodes. Markup is recognised first and entities are decoded last, in the
// leaves, so that escaped text can never turn into a mention, a link or a format.

import { el } from "./dom.js";
import { slackDate } from "./when.js";

const DEEPEST = 4;
const EMOJI = {
  white_check_mark: "✅",
  heavy_check_mark: "✔️",
  x: "❌",
  warning: "⚠️",
  hourglass: "⌛",
  hourglass_flowing_sand: "⏳",
  email: "✉️",
  envelope: "✉️",
  ticket: "🎫",
  eyes: "👀",
  lock: "🔒",
  question: "❓",
  grey_question: "❔",
  no_entry: "⛔",
  no_entry_sign: "🚫",
  information_source: "ℹ️",
  tada: "🎉",
  wave: "👋",
  thumbsup: "👍",
  robot_face: "🤖",
  memo: "📝",
  clock3: "🕒",
  rotating_light: "🚨",
  arrows_counterclockwise: "🔄",
  pencil2: "✏️",
};

// In order: <reference>, `code`, *bold*, _italic_, ~struck~, :emoji:, bare address.
const TOKEN = new RegExp(
  [
    "<([^<>\\n]{1,3000})>",
    "`([^`\\n]+)`",
    "(?<![\\w*])\\*(?![\\s*])([^*\\n]+?)(?<!\\s)\\*(?![\\w*])",
    "(?<![\\w_])_(?![\\s_])([^_\\n]+?)(?<!\\s)_(?![\\w_])",
    "(?<![\\w~])~(?![\\s~])([^~\\n]+?)(?<!\\s)~(?![\\w~])",
    ":([a-z0-9_+-]{1,60}):",
    "(https?://[^\\s<>]+[^\\s<>.,;:!?)\\]])",
  ].join("|"),
  "g",
);

function decode(text) {
  return text.replace(/&(lt|gt|amp);/g, (_, name) => ({ lt: "<", gt: ">", amp: "&" })[name]);
}

/** Replace the emoji names that this page can draw; others stay as they were written. */
export function withEmoji(text) {
  return text.replace(/:([a-z0-9_+-]{1,60}):/g, (whole, name) =>
    Object.hasOwn(EMOJI, name) ? EMOJI[name] : whole,
  );
}

/** Make a link that goes nowhere but to http, https or mail; anything else stays text. */
export function link(url, label) {
  if (!/^(https?:\/\/|mailto:)/i.test(url)) return el("span", { text: label });
  return el("a", {
    href: url,
    target: "_blank",
    rel: "noopener noreferrer",
    title: url,
    text: label,
  });
}

export function mention(label) {
  return el("span", { class: "mention", text: label });
}

function reference(inside, names) {
  const [target, ...rest] = inside.split("|");
  const label = rest.length ? decode(rest.join("|")) : null;
  if (/^@[UW]\w*$/.test(target)) return mention(`@${names.user(target.slice(1), label)}`);
  if (/^#[CGD]\w*$/.test(target)) return mention(`#${names.channel(target.slice(1), label)}`);
  if (/^!(channel|here|everyone)$/.test(target)) return mention(`@${target.slice(1)}`);
  if (/^!subteam\^\w+$/.test(target)) return mention(label ?? `@${names.group(target.slice(9))}`);
  const date = /^!date\^(\d+)\^([^^]+)(\^.*)?$/.exec(target);
  if (date) return el("span", { text: slackDate(date[1], decode(date[2]), label) });
  if (/^(https?:\/\/|mailto:)/i.test(target)) return link(decode(target), label ?? decode(target));
  return null;
}

function styled(tag, inside, names, verbatim, depth) {
  return el(tag, {}, inline(inside, names, verbatim, depth + 1));
}

function token(match, names, verbatim, depth) {
  const [whole, ref, code, bold, italic, struck, emoji, url] = match;
  if (ref !== undefined) return reference(ref, names) ?? decode(whole);
  if (code !== undefined) return el("code", { text: decode(code) });
  if (bold !== undefined) return styled("strong", bold, names, verbatim, depth);
  if (italic !== undefined) return styled("em", italic, names, verbatim, depth);
  if (struck !== undefined) return styled("s", struck, names, verbatim, depth);
  if (emoji !== undefined) return withEmoji(whole);
  return verbatim ? decode(url) : link(decode(url), decode(url));
}

function inline(text, names, verbatim, depth = 0) {
  if (depth >= DEEPEST) return [decode(text)];
  const nodes = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    nodes.push(decode(text.slice(at, match.index)), token(match, names, verbatim, depth));
    at = match.index + match[0].length;
  }
  nodes.push(decode(text.slice(at)));
  return nodes.filter((node) => node !== "");
}

function paragraphs(text, names, verbatim) {
  const nodes = [];
  let quoted = [];
  let open = [];
  const flush = () => {
    if (open.length) nodes.push(el("span", {}, inline(open.join("\n"), names, verbatim)));
    if (quoted.length) nodes.push(el("blockquote", {}, inline(quoted.join("\n"), names, verbatim)));
    open = [];
    quoted = [];
  };
  for (const line of text.split("\n")) {
    const quote = /^(?:>|&gt;) ?(.*)$/.exec(line);
    if (quote ? open.length : quoted.length) flush();
    if (quote) quoted.push(quote[1]);
    else open.push(line);
  }
  flush();
  return nodes;
}

/** Return nodes for a mrkdwn text. With `verbatim`, bare addresses do not become links. */
export function mrkdwn(text, names, verbatim = false) {
  return text.split(/```([\s\S]+?)```/).flatMap((part, index) => {
    if (index % 2) return [el("pre", { text: decode(part.replace(/^\n|\n$/g, "")) })];
    const trimmed = index ? part.replace(/^\n/, "") : part;
    return trimmed ? paragraphs(trimmed, names, verbatim) : [];
  });
}
