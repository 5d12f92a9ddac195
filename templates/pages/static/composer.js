"use strict";
// The message box. A line that starts with a slash is a command, any other line names the bot.

const MOST_REMEMBERED = 50;

export class Composer {
  /** `send` takes the text and resolves to whether it arrived. */
  constructor(send) {
    this.send = send;
    this.form = document.getElementById("composer");
    this.field = document.getElementById("say");
    this.button = this.form.querySelector("[type=submit]");
    this.said = [];
    this.at = 0;
    this.form.addEventListener("submit", (event) => void this.submit(event));
    this.field.addEventListener("keydown", (event) => this.recall(event));
    this.field.addEventListener("input", () => this.ready());
    for (const chip of document.querySelectorAll("#suggestions .chip")) {
      chip.addEventListener("click", () => this.put(chip.textContent));
    }
    this.ready();
  }

  ready() {
    this.button.disabled = !this.field.value.trim();
  }

  put(text) {
    this.field.value = text;
    this.field.focus();
    this.ready();
  }

  /** Fetch earlier lines with the up and down arrows. */
  recall(event) {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    const to = this.at + (event.key === "ArrowUp" ? -1 : 1);
    if (to < 0 || to > this.said.length) return;
    event.preventDefault();
    this.at = to;
    this.put(this.said[to] ?? "");
  }

  async submit(event) {
    event.preventDefault();
    const text = this.field.value.trim();
    if (!text) return;
    this.said = [...this.said, text].slice(-MOST_REMEMBERED);
    this.at = this.said.length;
    this.put("");
    // What did not arrive comes back to be sent again, unless something else is being typed.
    if (!(await this.send(text)) && !this.field.value) this.put(text);
  }

  addressed(channel) {
    this.field.placeholder = `Message #${channel}: a /command, or @Signoff …`;
  }
}
