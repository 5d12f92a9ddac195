"use strict";
// The mailbox: what really arrived, with its headers, both parts and its exact bytes. The HTML part
// comes from a page of its own that may run nothing and load nothing.

import { el, icon, redraw, tabs } from "./dom.js";
import { clock, full, iso } from "./when.js";

const HEADERS = [
  ["from", "From"],
  ["to", "To"],
  ["cc", "Cc"],
  ["reply_to", "Reply to"],
  ["subject", "Subject"],
  ["date", "Date"],
];

const shown = (value) => (Array.isArray(value) ? value.join(", ") : (value ?? ""));

export class Mailbox {
  constructor() {
    this.pane = document.getElementById("mail-pane");
    this.node = document.getElementById("mail");
    this.count = document.getElementById("mail-count");
    this.mails = [];
    this.open = null;
    this.known = null;
  }

  show(mails) {
    const ids = new Set(mails.map((mail) => mail.id));
    this.fresh = new Set(this.known ? [...ids].filter((id) => !this.known.has(id)) : []);
    this.known = ids;
    this.mails = mails;
    this.draw();
  }

  draw() {
    const mail = this.mails.find((each) => each.id === this.open);
    this.pane.classList.toggle("opened", Boolean(mail));
    this.count.textContent = this.mails.length ? String(this.mails.length) : "";
    if (mail) redraw(this.node, mail, () => this.letter(mail));
    else redraw(this.node, this.mails, () => this.list());
  }

  choose(id) {
    const before = this.open;
    this.open = id;
    this.draw();
    if (id) this.node.querySelector(".back").focus();
    else
      [...this.node.querySelectorAll("[data-key]")].find((n) => n.dataset.key === before)?.focus();
  }

  list() {
    if (!this.mails.length) {
      return el(
        "p",
        { class: "empty" },
        icon("mail"),
        "No mail yet. Once a closure is approved, the customer's mail arrives here.",
      );
    }
    return el(
      "ul",
      { class: "mails" },
      [...this.mails].reverse().map((mail) =>
        el(
          "li",
          { class: this.fresh.has(mail.id) ? "arrived" : null },
          el(
            "button",
            {
              type: "button",
              class: "mail-item",
              data: { key: mail.id },
              on: { click: () => this.choose(mail.id) },
            },
            el("span", { class: "mail-to", text: `To ${shown(mail.to)}` }),
            el("time", { class: "stamp", datetime: iso(mail.date), text: clock(mail.date) }),
            el("span", { class: "mail-subject", dir: "auto", text: mail.subject }),
            el("span", {
              class: "mail-start",
              dir: "auto",
              text: (mail.text ?? "").replace(/\s+/g, " ").slice(0, 120),
            }),
          ),
        ),
      ),
    );
  }

  letter(mail) {
    const part = el("div", {
      class: "mail-part",
      role: "tabpanel",
      id: "mail-part",
      tabindex: "0",
      "aria-label": "Mail content",
    });
    const choices = [
      ["text", "Text"],
      ["html", "HTML"],
      ["raw", "Raw bytes"],
    ].filter(([key]) => mail[key] !== null && mail[key] !== undefined);
    const list = el(
      "div",
      { class: "tabs", role: "tablist", "aria-label": "Parts of the mail" },
      choices.map(([key, label]) =>
        el("button", {
          type: "button",
          role: "tab",
          "aria-controls": "mail-part",
          data: { tab: key, key: `tab ${key}` },
          text: label,
        }),
      ),
    );
    tabs(list, (key) => part.replaceChildren(this.part(mail, key)));
    return [
      el(
        "button",
        {
          type: "button",
          class: "back link",
          data: { key: "back" },
          on: { click: () => this.choose(null) },
        },
        icon("back"),
        "All mail",
      ),
      el(
        "dl",
        { class: "headers" },
        HEADERS.filter(([key]) => mail[key]?.length).flatMap(([key, label]) => [
          el("dt", { text: label }),
          el("dd", { dir: "auto", text: key === "date" ? full(mail.date) : shown(mail[key]) }),
        ]),
      ),
      list,
      part,
    ];
  }

  part(mail, key) {
    if (key === "html") {
      return el("iframe", {
        sandbox: "",
        title: `HTML part of “${mail.subject}”`,
        referrerpolicy: "no-referrer",
        src: `/sandbox/mail/${encodeURIComponent(mail.id)}/html`,
      });
    }
    if (key === "text") return el("pre", { class: "letter", dir: "auto", text: mail.text });
    return el(
      "div",
      {},
      el("p", { class: "digest" }, "SHA-256 ", el("code", { text: mail.sha256 ?? "" })),
      el("pre", { class: "raw", text: mail.raw }),
    );
  }
}
