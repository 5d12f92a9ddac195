"use strict";
// The ticket desk. A customer's reply moves a ticket on, so that a waiting card becomes stale.

import { asked } from "./dialogs.js";
import { el, icon, redraw } from "./dom.js";
import { badge } from "./states.js";

export class Tickets {
  /** `act` is {reply(id, body), reopen(id)}. */
  constructor(act) {
    this.act = act;
    this.node = document.getElementById("tickets");
  }

  show(tickets) {
    redraw(this.node, tickets, () =>
      tickets.length
        ? el(
            "ul",
            { class: "ticket-list" },
            tickets.map((ticket) => this.ticket(ticket)),
          )
        : el("p", { class: "empty" }, icon("ticket"), "No tickets."),
    );
  }

  ticket(ticket) {
    const closed = ["closed", "solved"].includes(ticket.status);
    const press = (label, key, click) =>
      el(
        "button",
        {
          type: "button",
          class: "button small",
          data: { key: `${key} ${ticket.id}` },
          "aria-label": `${label}, ticket ${ticket.id}`,
          on: { click },
        },
        label,
      );
    return el(
      "li",
      { class: "ticket" },
      el(
        "div",
        { class: "ticket-head" },
        el("span", { class: "ticket-id", text: ticket.id }),
        el("span", {
          class: "version",
          title: "Version: grows with each change",
          text: `v${ticket.version}`,
        }),
        badge(ticket.status),
      ),
      el("p", { class: "ticket-subject", dir: "auto", text: ticket.subject }),
      el(
        "div",
        { class: "ticket-acts" },
        press("Customer replies", "reply", () => void this.reply(ticket)),
        closed ? press("Reopen", "reopen", () => void this.act.reopen(ticket.id)) : null,
      ),
    );
  }

  async reply(ticket) {
    const body = await asked(
      `Reply on ticket ${ticket.id}`,
      "What the customer writes",
      "One more thing before you close this: I still see the old amount on my invoice.",
      "Send as customer",
    );
    if (body) await this.act.reply(ticket.id, body);
  }
}
