"use strict";
// The page itself: it asks for the state after each change and gives it to the parts that draw it.

import { Unreachable, get, listen, post } from "./api.js";
import { coalesced } from "./coalesced.js";
import { Composer } from "./composer.js";
import { HomeTab } from "./home.js";
import { tabs } from "./dom.js";
import { Mailbox } from "./mailbox.js";
import { Messages } from "./messages.js";
import { namesOf } from "./names.js";
import { Sidebar } from "./sidebar.js";
import { Tickets } from "./tickets.js";
import { Timeline } from "./timeline.js";
import { tell, toast } from "./toast.js";
import { ViewDialog } from "./view.js";

// What is outside Slack sends no events, so that it is asked for at this pace while it can be seen.
const WORLD_MS = 2000;

const kept = {
  get: (key) => sessionStorage.getItem(`sandbox.${key}`),
  set: (key, value) => sessionStorage.setItem(`sandbox.${key}`, value),
};

class Sandbox {
  constructor() {
    this.state = null;
    this.viewer = kept.get("viewer");
    this.channel = kept.get("channel");
    this.atHome = kept.get("home") === "yes";
    this.run = null;
    this.unheard = new Set();
    this.refresh = coalesced(() => this.load());
    this.world = coalesced(() => this.look());
    this.sidebar = new Sidebar({
      channel: (id) => this.visit(id),
      app: () => this.visit(null),
      viewer: (id) => this.choose("viewer", id),
    });
    this.messages = new Messages(document.getElementById("messages"));
    this.composer = new Composer((text) => this.say(text));
    this.home = new HomeTab({
      open: () => this.act("home", {}),
      click: (click) => this.act("click", click),
    });
    this.view = new ViewDialog({
      click: (click) => this.act("click", click),
      submit: (submission) => this.send("submit", submission),
      close: (closing) => this.act("close_view", closing),
    });
    this.mailbox = new Mailbox();
    this.timeline = new Timeline((number) => this.follow(number));
    this.tickets = new Tickets({
      reply: (id, body) =>
        this.change(id, "reply", { body }, `The customer replied on ticket ${id}.`),
      reopen: (id) => this.change(id, "reopen", {}, `Ticket ${id} is open again.`),
    });
  }

  start() {
    tabs(document.getElementById("panes"), (name) => (document.body.dataset.pane = name));
    listen(
      () => void this.refresh(),
      (lost) => this.heard("events", !lost),
    );
    setInterval(() => document.hidden || void this.world(), WORLD_MS);
    void this.world();
  }

  /** Go to a channel, or to the app's Home tab. */
  visit(channel) {
    this.atHome = channel === null;
    kept.set("home", this.atHome ? "yes" : "no");
    if (this.atHome) this.draw();
    else this.choose("channel", channel);
  }

  choose(what, id) {
    this[what] = id;
    kept.set(what, id);
    this.draw();
  }

  /** Note whether a part of the server answers; the page says so while any does not. */
  heard(part, answers) {
    if (answers) this.unheard.delete(part);
    else this.unheard.add(part);
    document.getElementById("lost").hidden = this.unheard.size === 0;
  }

  async load() {
    try {
      this.state = await get("/sandbox/state");
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      this.heard("state", false);
      return;
    }
    this.heard("state", true);
    this.draw();
    void this.world();
  }

  draw() {
    const state = this.state;
    if (!state) return;
    const people = state.users.filter((user) => user.role !== "bot");
    if (!people.some((user) => user.id === this.viewer)) this.viewer = people[0]?.id;
    const channel = state.channels.find((each) => each.id === this.channel) ?? state.channels[0];
    this.channel = channel.id;
    const names = namesOf(state);
    const viewer = names.person(this.viewer);
    this.sidebar.show(state, this.atHome ? null : channel.id, this.viewer);
    const bot = state.users.find((user) => user.role === "bot");
    document.getElementById("channel-name").textContent = this.atHome
      ? `${bot?.real_name ?? "The app"}, Home`
      : channel.name;
    document.getElementById("hash").hidden = this.atHome;
    document.getElementById("messages").hidden = this.atHome;
    document.getElementById("composer").hidden = this.atHome;
    this.home.show(this.atHome ? this.viewer : null, state.homes[this.viewer] ?? null, names);
    document.getElementById("viewer-name").textContent = viewer.real_name;
    this.composer.addressed(channel.name);
    this.messages.show(channel, state.ephemerals[this.viewer] ?? [], this.viewer, {
      names,
      click: (click) => this.act("click", click),
      redraw: () => this.draw(),
    });
    this.view.show(this.viewer, state.views[this.viewer] ?? null, names);
    document.body.dataset.ready = "true";
  }

  async look() {
    try {
      const paths = ["/sandbox/mail", "/sandbox/tickets", "/sandbox/runs"];
      const [mails, tickets, runs] = await Promise.all(paths.map((path) => get(path)));
      this.mailbox.show(mails);
      this.tickets.show(tickets);
      await this.tellRun(runs);
      this.heard("world", true);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      this.heard("world", false);
    }
  }

  /** Show the run that the person chose, or else the newest. */
  async tellRun(runs) {
    const newest = runs.reduce(
      (most, run) => (most === null || run.number > most ? run.number : most),
      null,
    );
    const chosen = runs.some((run) => String(run.number) === String(this.run)) ? this.run : newest;
    this.timeline.runs(runs, chosen);
    this.timeline.show(chosen === null ? [] : await get(`/sandbox/runs/${chosen}/timeline`));
  }

  follow(number) {
    this.run = number;
    void this.world();
  }

  /** Send what the person did; the answer, or null if it could not be sent. */
  async send(what, body) {
    try {
      const answer = await post(`/sandbox/${what}`, { user: this.viewer, ...body });
      const well = tell(answer);
      await this.refresh();
      return { ...answer, well };
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      toast(error.message, "warning");
      await this.refresh();
      return null;
    }
  }

  async act(what, body) {
    return (await this.send(what, body))?.well ?? false;
  }

  say(text) {
    const channel = this.channel;
    if (text.startsWith("/")) return this.act("slash", { channel, text });
    // Slack's client encodes what a person types, so that typed markup is no markup; the server
    // puts the mention of the bot in front.
    const typed = text.replace(/^@signoff\s+/i, "");
    const encoded = typed.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    return this.act("mention", { channel, text: encoded });
  }

  async change(ticket, what, body, done) {
    try {
      await post(`/sandbox/tickets/${encodeURIComponent(ticket)}/${what}`, body);
      toast(done);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      toast(error.message, "warning");
    }
    await this.world();
  }
}

new Sandbox().start();
