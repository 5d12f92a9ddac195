"use strict";
// rich_text as DOM nodes. A text element is literal: no mention, link, emoji or format is looked for.

import { el } from "./dom.js";
import { link, mention, withEmoji } from "./mrkdwn.js";
import { slackDate } from "./when.js";

const TAGS = { bold: "strong", italic: "em", strike: "s", underline: "u", code: "code" };

function dressed(node, style = {}) {
  return Object.entries(TAGS).reduce(
    (inner, [name, tag]) => (style[name] ? el(tag, {}, inner) : inner),
    node,
  );
}

function colour(value) {
  const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.backgroundColor = value;
  return el("span", {}, swatch, value);
}

function dated(part) {
  const text = slackDate(
    part.timestamp,
    part.format ?? "{date_short_pretty} at {time}",
    part.fallback,
  );
  return part.url ? link(part.url, text) : el("time", { text });
}

function part(item, names) {
  switch (item.type) {
    case "text":
      return document.createTextNode(item.text);
    case "link":
      return link(item.url, item.text ?? item.url);
    case "user":
      return mention(`@${names.user(item.user_id)}`);
    case "usergroup":
      return mention(`@${names.group(item.usergroup_id)}`);
    case "channel":
      return mention(`#${names.channel(item.channel_id)}`);
    case "broadcast":
      return mention(`@${item.range}`);
    case "emoji":
      return document.createTextNode(withEmoji(`:${item.name}:`));
    case "date":
      return dated(item);
    case "color":
      return colour(item.value);
    default:
      return document.createTextNode(`[${item.type}]`);
  }
}

function parts(elements, names) {
  return elements.map((item) => dressed(part(item, names), item.style));
}

function listed(element, names) {
  const ordered = element.style === "ordered";
  const items = element.elements.map((item) => el("li", {}, parts(item.elements, names)));
  return el(
    ordered ? "ol" : "ul",
    {
      class: `rich-list indent-${Math.min(element.indent ?? 0, 8)}`,
      start: ordered && element.offset ? element.offset + 1 : null,
    },
    items,
  );
}

function group(element, names) {
  switch (element.type) {
    case "rich_text_section":
      return el("div", { class: "rich-section" }, parts(element.elements, names));
    case "rich_text_preformatted":
      return el("pre", {}, parts(element.elements, names));
    case "rich_text_quote":
      return el("blockquote", {}, parts(element.elements, names));
    case "rich_text_list":
      return listed(element, names);
    default:
      return el("div", { text: `[${element.type}]` });
  }
}

export function richText(block, names) {
  return el(
    "div",
    { class: "rich-text" },
    block.elements.map((element) => group(element, names)),
  );
}
