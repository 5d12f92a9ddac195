"use strict";
// The channel: messages oldest first, threads under their parent, and what only one person sees.

import { avatar, el, icon, redraw } from "./dom.js";
import { blocks } from "./blocks.js";
import { mrkdwn } from "./mrkdwn.js";
import { clock, day, full, iso } from "./when.js";

const NEAR_PX = 120;

function stamp(ts) {
  return el("time", { class: "stamp", datetime: iso(ts), title: full(ts), text: clock(ts) });
}

function body(message, how) {
  if (message.blocks?.length) return blocks(message.blocks, how);
  return el("div", { class: "text" }, mrkdwn(message.text ?? "", how.names));
}

function head(message, who) {
  const role =
    who.role === "bot"
      ? "app"
      : ["outsider", "guest", "deactivated", "agent"].includes(who.role)
        ? who.role
        : null;
  return el(
    "div",
    { class: "who" },
    el("span", { class: "name", text: who.real_name }),
    role ? el("span", { class: `badge badge-${role}`, text: role }) : null,
    stamp(message.ts),
    message.edited ? el("span", { class: "edited", text: "(edited)" }) : null,
  );
}

function article(message, how) {
  const who = how.names.person(message.user);
  const act = (click) => how.click({ channel: how.channel, ts: message.ts, ...click });
  return el(
    "article",
    {
      class: "message",
      "aria-label": `${who.real_name}, ${clock(message.ts)}`,
      data: { ts: message.ts },
    },
    avatar(who),
    el("div", { class: "message-body" }, head(message, who), body(message, { ...how, act })),
  );
}

function thread(replies, how) {
  const count = `${replies.length} ${replies.length === 1 ? "reply" : "replies"}`;
  return el(
    "details",
    { class: "thread", open: true },
    el("summary", { text: count }),
    replies.map((reply) => article(reply, how)),
  );
}

function whispered(message, how) {
  const node = article({ ...message, user: how.names.bot().id }, how);
  node.classList.add("ephemeral");
  node.querySelector(".message-body").prepend(
    el(
      "div",
      { class: "only-you" },
      icon("eye"),
      "Only visible to you",
      el("button", {
        type: "button",
        class: "link",
        on: { click: () => how.dismiss(message.ts) },
        text: "Dismiss",
      }),
    ),
  );
  return node;
}

function welcome(channel) {
  const node = document.getElementById("welcome").content.cloneNode(true);
  node.querySelector(".channel-here").textContent = `#${channel.name}`;
  return node;
}

function divider(ts) {
  return el("div", { class: "day" }, el("span", { text: day(ts) }));
}

export class Messages {
  constructor(node) {
    this.node = node;
    this.dismissed = new Set();
    this.shown = null;
  }

  /** Draw the channel for one person. Only messages that changed are drawn anew. */
  show(channel, ephemerals, viewer, how) {
    const near = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < NEAR_PX;
    const key = `${channel.id}/${viewer}`;
    const fresh = this.shown !== key;
    if (fresh) this.node.replaceChildren();
    this.shown = key;
    const mine = ephemerals.filter((e) => e.channel === channel.id && !this.dismissed.has(e.ts));
    const dismiss = (ts) => {
      this.dismissed.add(ts);
      how.redraw();
    };
    this.place(this.rows(channel, mine, { ...how, channel: channel.id, dismiss }));
    if (fresh || near) this.node.scrollTop = this.node.scrollHeight;
  }

  rows(channel, mine, how) {
    const replies = new Map();
    const parents = [];
    for (const message of channel.messages) {
      const isReply = message.thread_ts && message.thread_ts !== message.ts;
      if (isReply)
        replies.set(message.thread_ts, [...(replies.get(message.thread_ts) ?? []), message]);
      else parents.push(message);
    }
    const whispers = mine.map((message) => ({ ...message, whisper: true }));
    const all = [...parents, ...whispers].sort((a, b) => Number(a.ts) - Number(b.ts));
    const rows = [{ key: "welcome", data: channel.name, draw: () => welcome(channel) }];
    let last = null;
    for (const message of all) {
      if (day(message.ts) !== last) {
        last = day(message.ts);
        rows.push({ key: `day ${last}`, data: last, draw: () => divider(message.ts) });
      }
      const answers = replies.get(message.ts) ?? [];
      const draw = () =>
        message.whisper
          ? whispered(message, how)
          : [article(message, how), ...(answers.length ? [thread(answers, how)] : [])];
      rows.push({
        key: `${message.whisper ? "only " : ""}${message.ts}`,
        data: [message, answers],
        draw,
      });
    }
    return rows;
  }

  place(rows) {
    const old = new Map([...this.node.children].map((node) => [node.dataset.row, node]));
    let before = this.node.firstElementChild;
    for (const row of rows) {
      const node = old.get(row.key) ?? el("div", { class: "row", data: { row: row.key } });
      old.delete(row.key);
      redraw(node, row.data, row.draw);
      if (node === before) before = before.nextElementSibling;
      else this.node.insertBefore(node, before);
    }
    for (const node of old.values()) node.remove();
  }
}
