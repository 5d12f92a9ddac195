"use strict";
// A person's Home tab of the app. Opening it tells the bot, which then publishes what it shows.

import { el, redraw } from "./dom.js";
import { blocks } from "./blocks.js";

export class HomeTab {
  /** `send` is {open(), click(click)}, each for the person who now looks. */
  constructor(send) {
    this.send = send;
    this.node = document.getElementById("home");
    this.opened = null;
  }

  /** Show the tab of `viewer`, or nothing; whoever comes to it anew opens it. */
  show(viewer, view, names) {
    this.node.hidden = viewer === null;
    if (viewer !== this.opened) {
      this.opened = viewer;
      if (viewer !== null) void this.send.open();
    }
    if (viewer === null) return;
    const act = (click) => this.send.click({ view_id: view.id, ...click });
    redraw(this.node, [viewer, view], () =>
      view
        ? blocks(view.blocks, { names, act, inputs: [] })
        : el("p", { class: "nothing", text: "Nothing was published here yet." }),
    );
  }
}
