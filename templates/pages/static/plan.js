"use strict";
// A plan of tasks and a task by itself, as Slack draws them: a sign for how each stands, and its words.

import { el } from "./dom.js";
import { richText } from "./rich_text.js";

const STATES = {
  pending: ["○", "waits"],
  in_progress: ["…", "under way"],
  complete: ["✓", "done"],
  error: ["✗", "came to nothing"],
};

/** Draw one task. */
export function task(block, how) {
  const [sign, words] = STATES[block.status];
  const more = [block.details, block.output].filter(Boolean);
  return el(
    "div",
    { class: `task task-${block.status}` },
    el("span", { class: "task-sign", role: "img", "aria-label": words, text: sign }),
    el(
      "div",
      { class: "task-words" },
      el("div", { text: block.title }),
      more.map((part) => richText(part, how.names)),
    ),
  );
}

/** Draw a plan with all of its tasks. */
export function plan(block, how) {
  return el(
    "div",
    { class: "plan" },
    el("div", { class: "plan-title", text: block.title }),
    (block.tasks ?? []).map((one) => task(one, how)),
  );
}
