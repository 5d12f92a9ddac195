"use strict";
// Short notes at the edge of the page: what Slack would show when the bot did not answer well.

import { el, icon } from "./dom.js";

const SHOWN_MS = 9000;
const MOST = 4;

/** Show a note; `tone` is "calm" or "warning". A warning is announced at once. */
export function toast(text, tone = "calm") {
  const place = document.getElementById("toasts");
  const dismiss = { type: "button", class: "quiet", "aria-label": "Dismiss note" };
  const note = el(
    "div",
    { class: `toast toast-${tone}`, role: tone === "warning" ? "alert" : "status" },
    icon(tone === "warning" ? "warning" : "tick"),
    el("span", { text }),
    el("button", { ...dismiss, on: { click: () => note.remove() } }, icon("close")),
  );
  place.append(note);
  while (place.childElementCount > MOST) place.firstElementChild.remove();
  setTimeout(() => note.remove(), SHOWN_MS);
}

const SEEN = {
  "warning sign": "Slack shows a warning sign beside the button: the bot did not take the click",
  operation_timeout: "Slack says “operation_timeout”: the bot did not answer within three seconds",
  dispatch_failed: "Slack says “dispatch_failed”: the bot could not be reached",
  "trouble connecting": "Slack says “We had some trouble connecting”: the bot's answer was no use",
};

/** Tell a failure that the person would see in Slack. True if there was none to tell. */
export function tell(answer) {
  const sees = answer?.sees ?? "nothing";
  const status = answer?.status ?? null;
  const notSent = status === null && sees === "nothing" && !answer?.seconds;
  const accepted = notSent || (status >= 200 && status < 300);
  // Slack's own error codes are single words of this form; everything else is the bot's sentence.
  const isCode = /^[a-z]+(_[a-z]+)+$/.test(sees);
  if (!answer) return false;
  if (accepted && !isCode && !Object.hasOwn(SEEN, sees)) return true;
  const spent = typeof answer?.seconds === "number" ? `, ${answer.seconds.toFixed(2)} s` : "";
  const sentence =
    SEEN[sees] ?? (sees === "nothing" ? "The bot did not accept this" : `Slack shows: ${sees}`);
  toast(`${sentence} (${status === null ? "no answer" : `status ${status}`}${spent}).`, "warning");
  return false;
}
