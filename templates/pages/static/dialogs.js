"use strict";
// Small questions over the page. They use the browser's own modal dialogs: focus stays inside,
// Escape means no, and focus goes back to where it was.

import { el } from "./dom.js";
import { mrkdwn, withEmoji } from "./mrkdwn.js";

function words(object, names) {
  if (object.type === "mrkdwn") return mrkdwn(object.text, names, object.verbatim);
  return [object.emoji ? withEmoji(object.text) : object.text];
}

function ask(title, body, { yes, no, danger = false, value = () => true }) {
  return new Promise((resolve) => {
    let answer = null;
    const dialog = el(
      "dialog",
      { class: "ask", "aria-labelledby": "ask-title" },
      el(
        "form",
        { method: "dialog", on: { submit: () => (answer = value()) } },
        el("h2", { id: "ask-title" }, title),
        body,
        el(
          "div",
          { class: "dialog-foot" },
          el(
            "button",
            { type: "button", class: "button", on: { click: () => dialog.close() } },
            no,
          ),
          el(
            "button",
            { type: "submit", class: `button ${danger ? "danger-solid" : "primary"}` },
            yes,
          ),
        ),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Show a button's confirm dialog; true if the person agreed. */
export async function confirmed(confirm, names) {
  const body = el("div", { class: "text" }, words(confirm.text, names));
  const answer = await ask(words(confirm.title, names), body, {
    yes: words(confirm.confirm, names),
    no: words(confirm.deny, names),
    danger: confirm.style === "danger",
  });
  return answer === true;
}

/** Ask for a text; null if the person thought better of it. */
export function asked(title, label, initial, yes) {
  const field = el("textarea", { id: "ask-text", rows: 4, required: true });
  field.value = initial;
  const body = el(
    "div",
    { class: "input" },
    el("label", { for: "ask-text", class: "label", text: label }),
    field,
  );
  return ask(title, body, { yes, no: "Cancel", value: () => field.value.trim() || null });
}
