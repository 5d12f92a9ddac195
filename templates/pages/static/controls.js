"use strict";
// What a person presses or fills in: buttons and the inputs of modals, with Slack's state values.

import { el, icon } from "./dom.js";
import { confirmed } from "./dialogs.js";
import { withEmoji } from "./mrkdwn.js";

/** Return the words of a plain_text object, with emoji names drawn only where it asks for them. */
export function plain(object) {
  return object?.emoji ? withEmoji(object.text) : (object?.text ?? "");
}

/** Find the button as it is drawn now: its message may have been drawn anew meanwhile. */
function asDrawnNow(button, row) {
  if (button.isConnected) return button;
  const place = document.querySelector(`[data-row="${CSS.escape(row ?? "")}"]`);
  return place?.querySelector(`[data-action="${CSS.escape(button.dataset.action)}"]`) ?? button;
}

async function press(button, element, block, act, names, option) {
  const row = button.closest("[data-row]")?.dataset.row;
  if (element.confirm && !(await confirmed(element.confirm, names))) return;
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  const well = await act({ action_id: element.action_id, block_id: block.block_id, option });
  button.removeAttribute("aria-busy");
  button.disabled = false;
  const shown = asDrawnNow(button, row);
  shown.parentElement?.querySelector(".failed")?.remove();
  if (!well)
    shown.after(
      el("span", { class: "failed", title: "The bot did not take this click" }, icon("warning")),
    );
}

function pressable(element, block, act, names, { label, style, option }) {
  const button = el("button", {
    type: "button",
    class: `button ${style ?? ""}`.trim(),
    text: label,
    "aria-label": element.accessibility_label ?? null,
    data: {
      action: element.action_id,
      key: `${block.block_id}/${element.action_id}/${option ?? ""}`,
    },
    on: { click: () => press(button, element, block, act, names, option) },
  });
  return button;
}

function linkButton(element, block, act) {
  return el("a", {
    class: "button",
    href: element.url,
    target: "_blank",
    rel: "noopener noreferrer",
    text: plain(element.text),
    on: { click: () => void act({ action_id: element.action_id, block_id: block.block_id }) },
  });
}

/** Draw an element of an actions block or an accessory; `act` sends the click and tells success. */
export function control(element, block, act, names) {
  switch (element.type) {
    case "button":
      return /^(https?:\/\/|mailto:)/i.test(element.url ?? "")
        ? linkButton(element, block, act)
        : pressable(element, block, act, names, {
            label: plain(element.text),
            style: element.style,
          });
    case "overflow":
      return el(
        "div",
        { class: "overflow", role: "group", "aria-label": "More actions" },
        element.options.map((option) =>
          pressable(element, block, act, names, {
            label: plain(option.text),
            option: option.value,
          }),
        ),
      );
    default:
      return el("span", { class: "undrawn", text: `[${element.type}: not drawn in the sandbox]` });
  }
}

// Inputs. Each entry makes the field for an element and says how its value is read.

function textField(element, id) {
  const kinds = { email_text_input: "email", url_text_input: "url", number_input: "number" };
  const shared = {
    id,
    placeholder: element.placeholder ? plain(element.placeholder) : null,
    maxlength: element.max_length ?? null,
    autofocus: element.focus_on_load || null,
  };
  const field = element.multiline
    ? el("textarea", { ...shared, rows: 5 })
    : el("input", {
        ...shared,
        type: kinds[element.type] ?? "text",
        min: element.min_value ?? null,
        max: element.max_value ?? null,
        step: element.is_decimal_allowed ? "any" : null,
      });
  field.value = element.initial_value ?? "";
  return { field, read: () => ({ type: element.type, value: field.value || null }) };
}

const PICKED = { datepicker: ["date", "selected_date"], timepicker: ["time", "selected_time"] };

function picker(element, id) {
  const [type, key] = PICKED[element.type];
  const field = el("input", { id, type });
  field.value = element[`initial_${type}`] ?? "";
  return { field, read: () => ({ type: element.type, [key]: field.value || null }) };
}

function optionsOf(element, names) {
  if (element.type === "users_select") {
    return names
      .everyone()
      .map((user) => ({ label: user.real_name, value: user.id, whole: user.id }));
  }
  const all = element.options ?? element.option_groups.flatMap((group) => group.options);
  return all.map((option) => ({
    label: plain(option.text),
    about: option.description ? plain(option.description) : null,
    value: option.value,
    whole: option,
  }));
}

function select(element, id, names) {
  const options = optionsOf(element, names);
  const users = element.type === "users_select";
  const chosen = users ? element.initial_user : element.initial_option?.value;
  const field = el("select", { id }, [
    el("option", { value: "", text: element.placeholder ? plain(element.placeholder) : "Choose…" }),
    ...options.map((o) => el("option", { value: o.value, text: o.label })),
  ]);
  field.value = chosen ?? "";
  const key = users ? "selected_user" : "selected_option";
  const read = () => ({
    type: element.type,
    [key]: options.find((o) => o.value === field.value)?.whole ?? null,
  });
  return { field, read };
}

function choices(element, id, names) {
  const many = element.type === "checkboxes";
  const initial = many ? (element.initial_options ?? []) : [element.initial_option].filter(Boolean);
  const options = optionsOf(element, names);
  const boxes = options.map((o, index) => {
    const box = el("input", {
      type: many ? "checkbox" : "radio",
      name: id,
      id: `${id}-${index}`,
      value: o.value,
    });
    box.checked = initial.some((chosen) => chosen.value === o.value);
    return box;
  });
  const field = el(
    "div",
    { class: "choices", role: many ? "group" : "radiogroup", id },
    boxes.map((box, index) =>
      el(
        "label",
        { for: box.id },
        box,
        el("span", { text: options[index].label }),
        options[index].about ? el("small", { text: options[index].about }) : null,
      ),
    ),
  );
  const read = () => {
    const picked = options.filter((_, index) => boxes[index].checked).map((o) => o.whole);
    return many
      ? { type: element.type, selected_options: picked }
      : { type: element.type, selected_option: picked[0] ?? null };
  };
  return { field, read };
}

const FIELDS = {
  plain_text_input: textField,
  email_text_input: textField,
  url_text_input: textField,
  number_input: textField,
  datepicker: picker,
  timepicker: picker,
  static_select: select,
  users_select: select,
  checkboxes: choices,
  radio_buttons: choices,
};

/** Draw an input block. `inputs` collects how to read it, and where to write an error. */
export function input(block, names, inputs) {
  const element = block.element;
  const id = `input-${block.block_id}-${element.action_id}`;
  const make = FIELDS[element.type];
  if (!make)
    return el("p", { class: "undrawn", text: `[${element.type}: not drawn in the sandbox]` });
  const { field, read } = make(element, id, names);
  const error = el("p", { class: "field-error", id: `${id}-error`, hidden: true });
  const group = field.classList.contains("choices");
  const label = el(
    group ? "span" : "label",
    { class: "label", for: group ? null : id, id: `${id}-label` },
    plain(block.label),
  );
  if (block.optional) label.append(el("span", { class: "optional", text: " (optional)" }));
  if (group) field.setAttribute("aria-labelledby", `${id}-label`);
  field.setAttribute("aria-describedby", `${id}-error`);
  field.dataset.key = `${block.block_id}/${element.action_id}`;
  inputs.push({ block, element, field, error, read });
  return el(
    "div",
    { class: "input" },
    label,
    field,
    error,
    block.hint ? el("p", { class: "hint", text: plain(block.hint) }) : null,
  );
}
