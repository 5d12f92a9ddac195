"use strict";
// Slack's modals. One is on screen at a time: the person's top view. What was typed survives an
// update of the view, as in Slack, as long as the input keeps its block_id and action_id.

import { el, icon } from "./dom.js";
import { blocks } from "./blocks.js";
import { plain } from "./controls.js";

const EMPTY = new Set(["", null, undefined]);

function valueOf(state) {
  if ("selected_options" in state) return state.selected_options.length ? "some" : "";
  return (
    state.value ??
    state.selected_option ??
    state.selected_user ??
    state.selected_date ??
    state.selected_time
  );
}

function fieldsOf(field) {
  return field.classList.contains("choices") ? [...field.querySelectorAll("input")] : [field];
}

export class ViewDialog {
  /** `send` is {click, submit, close}, each for the person who now looks. */
  constructor(send) {
    this.send = send;
    this.inputs = [];
    this.view = null;
    this.user = null;
    this.dialog = el("dialog", { class: "view", "aria-labelledby": "view-title" });
    this.dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      void this.close();
    });
    document.body.append(this.dialog);
  }

  /** Show the person's view, or none. Drawing the same view again changes nothing. */
  show(user, view, names) {
    const same = JSON.stringify([user, view]);
    if (same === this.same) return;
    this.same = same;
    const kept = this.view?.id === view?.id && this.user === user ? this.typed() : new Map();
    this.view = view;
    this.user = user;
    if (!view) {
      if (this.dialog.open) this.dialog.close();
      this.dialog.replaceChildren();
      return;
    }
    this.draw(view, names);
    this.restore(kept);
    if (!this.dialog.open) this.dialog.showModal();
    if (!this.dialog.querySelector(".view-body :focus")) this.enter();
  }

  /** Go to the first input, or to the content if there is none. */
  enter() {
    const first = this.inputs[0]?.field;
    (first?.querySelector("input") ?? first ?? this.dialog.querySelector(".view-body")).focus();
  }

  /** Return what was filled in, by input, as [value, checked] of each of its fields. */
  typed() {
    const filled = (field) => fieldsOf(field).map((each) => [each.value, each.checked]);
    return new Map(this.inputs.map(({ field }) => [field.dataset.key, filled(field)]));
  }

  restore(kept) {
    for (const { field } of this.inputs) {
      const before = kept.get(field.dataset.key) ?? [];
      for (const [index, each] of fieldsOf(field).entries()) {
        if (!(index in before)) continue;
        const [value, checked] = before[index];
        if (each.type !== "radio" && each.type !== "checkbox") each.value = value;
        else if (each.value === value) each.checked = checked;
      }
    }
  }

  draw(view, names) {
    this.inputs = [];
    const act = (click) => this.send.click({ view_id: view.id, ...click });
    const foot = el(
      "div",
      { class: "dialog-foot" },
      el(
        "button",
        { type: "button", class: "button", on: { click: () => void this.close() } },
        view.close ? plain(view.close) : "Close",
      ),
    );
    if (view.submit)
      foot.append(el("button", { type: "submit", class: "button primary" }, plain(view.submit)));
    const form = el(
      "form",
      { novalidate: true, on: { submit: (event) => void this.submit(event) } },
      el(
        "header",
        { class: "view-head" },
        el("span", { class: "avatar avatar-bot", "aria-hidden": "true", text: "S" }),
        el("h2", { id: "view-title", text: plain(view.title) }),
        el(
          "button",
          {
            type: "button",
            class: "quiet",
            "aria-label": "Close",
            on: { click: () => void this.close() },
          },
          icon("close"),
        ),
      ),
      el(
        "div",
        { class: "view-body", tabindex: "0", role: "group", "aria-label": "Content" },
        blocks(view.blocks, { names, act, inputs: this.inputs }),
      ),
      foot,
    );
    this.dialog.replaceChildren(form);
  }

  async submit(event) {
    event.preventDefault();
    const values = {};
    const errors = {};
    for (const { block, element, read } of this.inputs) {
      const state = read();
      (values[block.block_id] ??= {})[element.action_id] = state;
      if (!block.optional && EMPTY.has(valueOf(state)))
        errors[block.block_id] = "Please complete this required field.";
    }
    this.mark(errors);
    if (Object.keys(errors).length) return;
    const submit = this.dialog.querySelector("[type=submit]");
    submit.disabled = true;
    const answer = await this.send.submit({ view_id: this.view.id, values });
    submit.disabled = false;
    if (!answer) return;
    this.mark(answer.view_errors ?? {});
  }

  /** Write errors, by block_id, under their fields and go to the first. */
  mark(errors) {
    let first = null;
    for (const { block, field, error } of this.inputs) {
      const message = errors[block.block_id];
      error.textContent = message ?? "";
      error.hidden = !message;
      if (message) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
      if (message) first ??= field;
    }
    (first?.querySelector("input") ?? first)?.focus();
  }

  async close() {
    if (this.view) await this.send.close({ view_id: this.view.id });
  }
}
