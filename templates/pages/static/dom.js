"use strict";
// Everything on the page is made here, from text nodes and attributes: data never becomes markup.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element. `props`: class, text, on (listeners), data, or any attribute; null is left out. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "data") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

const PATHS = {
  hash: "M6 2 4.5 14M11.5 2 10 14M2.5 5.5h11M2 10.5h11",
  mail: "M2 4h12v8.5H2zM2 4.5l6 4.5 6-4.5",
  send: "M2.5 8 13.5 3 10 13.5 7.5 9zM7.5 9l6-6",
  close: "M4 4l8 8M12 4l-8 8",
  back: "M9.5 3.5 5 8l4.5 4.5",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 6.3v0a1.7 1.7 0 1 1 0 3.4 1.7 1.7 0 0 1 0-3.4z",
  warning: "M8 2.5 14.5 13.5h-13zM8 6.5v3.5M8 11.8v.1",
  tick: "M3 8.5 6.5 12 13 4.5",
  reply: "M7 4 3 8l4 4M3.5 8H10a3 3 0 0 1 3 3v1.5",
  clock: "M8 1.8v0a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8zM8 4.8V8l2.3 1.8",
  ticket: "M2 4.5h12v2.2a1.3 1.3 0 0 0 0 2.6v2.2H2V9.3a1.3 1.3 0 0 0 0-2.6zM10 4.5v7",
};

/** Draw one of the page's own line icons; it is decoration, so a screen reader skips it. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** Make a person's round mark: the first two letters on a colour that follows from the id. */
export function avatar(user) {
  const bot = user.role === "bot";
  const letters = bot ? "S" : [...(user.real_name || user.name || "?")].slice(0, 2).join("");
  const tone =
    [...user.id].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 9973, 0) % 6;
  return el("span", {
    class: bot ? "avatar avatar-bot" : `avatar tone-${tone}`,
    "aria-hidden": "true",
    text: letters,
  });
}

/** Draw into `node` only when `data` differs from what was drawn there last. */
export function redraw(node, data, draw) {
  const drawn = JSON.stringify(data);
  if (node.drawn === drawn) return false;
  node.drawn = drawn;
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.dataset.key;
  const scrolled = node.scrollTop;
  node.replaceChildren(...[draw()].flat());
  node.scrollTop = scrolled;
  if (key) [...node.querySelectorAll("[data-key]")].find((n) => n.dataset.key === key)?.focus();
  return true;
}

/** Let the arrow keys, Home and End move through a list of tabs, as ARIA's tab pattern asks. */
export function tabs(list, choose) {
  const buttons = [...list.querySelectorAll("[role=tab]")];
  const select = (chosen) => {
    for (const button of buttons) {
      const on = button === chosen;
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
    }
    choose(chosen.dataset.tab);
  };
  for (const button of buttons) button.addEventListener("click", () => select(button));
  list.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const to = {
      ArrowRight: (at + 1) % buttons.length,
      ArrowLeft: (at + buttons.length - 1) % buttons.length,
      Home: 0,
      End: buttons.length - 1,
    }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    buttons[to].focus();
    select(buttons[to]);
  });
  select(buttons[0]);
}
