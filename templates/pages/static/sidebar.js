"use strict";
// The team, its channels, and who the person at the keyboard pretends to be.

import { avatar, el, icon, redraw } from "./dom.js";

export class Sidebar {
  /** `choose` is {channel(id), app(), viewer(id)}. */
  constructor(choose) {
    this.choose = choose;
    this.team = document.getElementById("team");
    this.channels = document.getElementById("channels");
    this.apps = document.getElementById("apps");
    this.people = document.getElementById("people");
  }

  /** `channel` is the id of the channel that is shown, or null for the app's Home tab. */
  show(state, channel, viewer) {
    redraw(this.team, state.team.name, () => state.team.name);
    const unseen = state.channels.map((c) => [c.id, c.name, c.id === channel]);
    redraw(this.channels, unseen, () => unseen.map((each) => this.channel(...each)));
    const bot = state.users.find((user) => user.role === "bot");
    redraw(this.apps, [bot, channel === null], () =>
      bot ? this.item("app", bot.real_name, avatar(bot), channel === null, this.choose.app) : [],
    );
    const cast = state.users.filter((user) => user.role !== "bot");
    redraw(this.people, [cast, viewer], () =>
      cast.map((user) => this.person(user, user.id === viewer)),
    );
  }

  channel(id, name, current) {
    return this.item(`channel ${id}`, name, icon("hash"), current, () => this.choose.channel(id));
  }

  item(key, name, mark, current, choose) {
    return el(
      "li",
      {},
      el(
        "button",
        {
          type: "button",
          class: "nav-item",
          "aria-current": current ? "page" : null,
          data: { key },
          on: { click: () => choose() },
        },
        mark,
        el("span", { text: name }),
      ),
    );
  }

  person(user, current) {
    const radio = el("input", {
      type: "radio",
      name: "viewer",
      value: user.id,
      data: { key: `viewer ${user.id}` },
      on: { change: () => this.choose.viewer(user.id) },
    });
    radio.checked = current;
    const role = user.role === "member" ? user.title : `${user.title}, ${user.role}`;
    return el(
      "label",
      { class: "person" },
      radio,
      avatar(user),
      el(
        "span",
        { class: "person-text" },
        el("span", { class: "name", text: user.real_name }),
        el("small", { text: role }),
      ),
    );
  }
}
