"use strict";
// Block Kit as Slack draws it. `plain_text` and rich text stay literal; only mrkdwn is read.

import { el } from "./dom.js";
import { control, input, plain } from "./controls.js";
import { mrkdwn } from "./mrkdwn.js";
import { plan, task } from "./plan.js";
import { richText } from "./rich_text.js";

/** Draw a text object as nodes. */
export function text(object, names) {
  return object.type === "mrkdwn"
    ? mrkdwn(object.text, names, object.verbatim)
    : [document.createTextNode(plain(object))];
}

// Nothing is fetched from elsewhere, so that an image is known by its description alone.
function image(element) {
  return el("span", {
    class: "image",
    role: "img",
    "aria-label": element.alt_text,
    text: element.alt_text,
  });
}

function section(block, how) {
  const body = el("div", { class: "section-body" });
  if (block.text) body.append(el("div", { class: "text" }, text(block.text, how.names)));
  if (block.fields) {
    const fields = block.fields.map((field) =>
      el("div", { class: "text" }, text(field, how.names)),
    );
    body.append(el("div", { class: "fields" }, fields));
  }
  const accessory = block.accessory && piece(block.accessory, block, how);
  return el(
    "div",
    { class: "section" },
    body,
    accessory ? el("div", { class: "accessory" }, accessory) : null,
  );
}

function piece(element, block, how) {
  return element.type === "image" ? image(element) : control(element, block, how.act, how.names);
}

function context(block, how) {
  return el(
    "div",
    { class: "context" },
    block.elements.map((element) =>
      element.type === "image"
        ? image(element)
        : el("span", { class: "text" }, text(element, how.names)),
    ),
  );
}

function table(block, how) {
  const cell = (item, tag) =>
    el(tag, {}, item.type === "raw_text" ? item.text : richText(item, how.names));
  const [head, ...rows] = block.rows;
  return el(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": "Table" },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map((item) => cell(item, "th")),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) =>
          el(
            "tr",
            {},
            row.map((item) => cell(item, "td")),
          ),
        ),
      ),
    ),
  );
}

function drawn(block, how) {
  switch (block.type) {
    case "header":
      return el("h3", { class: "header", text: plain(block.text) });
    case "section":
      return section(block, how);
    case "context":
      return context(block, how);
    case "divider":
      return el("hr");
    case "actions":
      return el(
        "div",
        { class: "actions" },
        block.elements.map((e) => piece(e, block, how)),
      );
    case "rich_text":
      return richText(block, how.names);
    case "input":
      return input(block, how.names, how.inputs);
    case "image":
      return image(block);
    case "table":
      return table(block, how);
    case "alert":
      return el(
        "div",
        { class: `alert alert-${block.level ?? "default"}` },
        text(block.text, how.names),
      );
    case "plan":
      return plan(block, how);
    case "task_card":
      return task(block, how);
    case "markdown":
      return el("div", { class: "text", text: block.text });
    default:
      return el("p", { class: "undrawn", text: `[${block.type} block: not drawn in the sandbox]` });
  }
}

/** Draw blocks. `how` is {names, act(click) -> went well, inputs}. */
export function blocks(list, how) {
  return el(
    "div",
    { class: "blocks" },
    list.map((block) => {
      const node = drawn(block, how);
      node.dataset.block = block.block_id ?? "";
      return node;
    }),
  );
}
