"use strict";
// One tone for each state word of the machines, and the word itself always beside the colour.

import { el } from "./dom.js";

const TONES = {
  good: [
    "applied",
    "succeeded",
    "granted",
    "approved",
    "consumed",
    "settled",
    "done",
    "ok",
    "confirmed",
    "solved",
    "closed",
  ],
  wait: [
    "awaiting",
    "waiting",
    "queued",
    "open",
    "held",
    "planned",
    "paused",
    "pending",
    "cancelling",
  ],
  busy: ["running", "executing", "dispatched"],
  unsure: ["unknown", "partial"],
  bad: ["failed", "rejected", "denied", "expired", "stale", "void", "not_applied", "refused"],
};

export function tone(state) {
  return Object.keys(TONES).find((name) => TONES[name].includes(state)) ?? "still";
}

/** Draw a state as a small word with a dot. */
export function badge(state) {
  return el("span", {
    class: `state state-${tone(state)}`,
    text: String(state).replaceAll("_", " "),
  });
}
