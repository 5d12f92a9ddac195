"use strict";
// One run, told in order: steps, moves of its machines, decisions, attempts and notes.

import { el, icon, redraw } from "./dom.js";
import { badge, tone } from "./states.js";
import { full, iso, seconds } from "./when.js";

const KINDS = {
  step: "step",
  move: "change",
  note: "note",
  attempt: "attempt",
  decision: "decision",
};

export class Timeline {
  /** `choose` is told the run's number, or null to follow the newest. */
  constructor(choose) {
    this.node = document.getElementById("timeline");
    this.select = document.getElementById("run");
    this.select.addEventListener("change", () => choose(this.select.value));
  }

  runs(runs, chosen) {
    const wanted = String(chosen ?? "");
    redraw(this.select, runs, () =>
      runs.map((run) =>
        el("option", {
          value: run.number,
          text: `#${run.number} · ${run.status}${run.title ? ` · ${run.title}` : ""}`,
        }),
      ),
    );
    this.select.hidden = runs.length === 0;
    if (this.select.value !== wanted) this.select.value = wanted;
  }

  show(entries) {
    redraw(this.node, entries, () =>
      entries.length
        ? el(
            "ol",
            { class: "line" },
            entries.map((entry) => this.entry(entry)),
          )
        : el(
            "p",
            { class: "empty" },
            icon("clock"),
            "No run yet. Once one is started, each of its steps is told here.",
          ),
    );
  }

  entry(entry) {
    return el(
      "li",
      { class: `event event-${entry.kind} tone-${tone(entry.state)}` },
      el(
        "div",
        { class: "event-head" },
        el("span", { class: "kind", text: KINDS[entry.kind] ?? entry.kind }),
        entry.state ? badge(entry.state) : null,
        el("time", {
          class: "stamp",
          datetime: iso(entry.at),
          title: full(entry.at),
          text: seconds(entry.at),
        }),
      ),
      el("p", { class: "event-title", dir: "auto", text: entry.title }),
      entry.text ? el("p", { class: "event-text", dir: "auto", text: entry.text }) : null,
    );
  }
}
