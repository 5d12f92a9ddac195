"""A scripted bot for the sandbox's page: real-looking cards and an answer to each gesture.

It knows no database and decides nothing; it only moves cards, so that the page has what to show.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from bot.sandbox.view_methods import show_home
from bot.sandbox.workspace import Workspace

Json = dict[str, Any]

HOSTILE = (
    "<img src=x onerror=\"document.title='broken'\"> <!channel> <@U0REVIEWER> "
    "<https://evil.example|https://good.example> *not bold* :white_check_mark: &lt;b&gt;"
)
LETTER = (
    "Hello Pat,\n\nthank you for writing to us. We found the duplicate charge of 24.90 EUR\n"
    "on your invoice of 12 November and refunded it today. It reaches your\n"
    "account within three working days.\n\nWe close this ticket now. If anything is left open, "
    "answer this mail\nand it opens again.\n\nKind regards,\nAcme Support"
)


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text, "emoji": False}


def section(*elements: Json) -> Json:
    return {"type": "rich_text_section", "elements": list(elements)}


def said(text: str, **style: bool) -> Json:
    return {"type": "text", "text": text} | ({"style": style} if style else {})


def user(user_id: str) -> Json:
    return {"type": "user", "user_id": user_id}


def card(
    ticket: str, version: int, to: str, letter: str, status: list[Json], buttons: list[Json]
) -> list[Json]:
    """Return the blocks of one operation's card."""
    fields = [("Ticket", f"{ticket} at version {version}"), ("To", to),
              ("Subject", f"Ticket {ticket} closed"), ("From", "support@acme.example")]  # fmt: skip
    blocks: list[Json] = [
        {"type": "header", "text": plain(f"Close ticket {ticket} and send one email")},
        {"type": "rich_text", "elements": [section(*status)]},
        {"type": "section", "fields": [plain(f"{name}\n{value}") for name, value in fields]},
        {"type": "rich_text", "elements": [
            {"type": "rich_text_preformatted", "elements": [said(letter)]}]},
        {"type": "context", "elements": [plain(
            f"Text and HTML · {len(letter)} characters · digest 9f2c 41d8 · "
            "Resend: repeats within 24 h are dropped")]},
    ]  # fmt: skip
    return [*blocks, {"type": "actions", "elements": buttons}] if buttons else blocks


def button(action_id: str, label: str, **more: object) -> Json:
    return {"type": "button", "action_id": action_id, "text": plain(label), "value": "op", **more}


def waiting_buttons(ticket: str) -> list[Json]:
    confirm = {
        "title": plain("Approve this closure?"),
        "text": plain(f"Ticket {ticket} is closed and one email is sent. Digest 9f2c 41d8."),
        "confirm": plain("Approve"),
        "deny": plain("Not yet"),
    }
    return [
        button("approve", "Approve", style="primary", confirm=confirm),
        button("reject", "Reject", style="danger"),
        button("why", "Why this?"),
    ]


def waiting_status(due_at: int) -> list[Json]:
    due = {"type": "date", "timestamp": due_at, "format": "{date_short_pretty} at {time}",
           "fallback": "soon"}  # fmt: skip
    return [said("Waiting for one reviewer", bold=True), said(" · asked by "), user("U0REQUESTER"),
            said(" · decide by "), due]  # fmt: skip


def reason_modal() -> Json:
    """Return the modal that asks why a closure is rejected."""
    choices = [("tone", "The tone is wrong"), ("facts", "The facts are wrong"),
               ("early", "Too early to close")]  # fmt: skip
    options = [{"text": plain(label), "value": value} for value, label in choices]
    return {
        "type": "modal",
        "callback_id": "reject",
        "title": plain("Reject the closure"),
        "submit": plain("Reject"),
        "close": plain("Keep waiting"),
        "blocks": [
            {"type": "section", "text": plain("The agent reads your reason and may propose anew.")},
            {"type": "input", "block_id": "kind", "label": plain("What is wrong"), "element": {
                "type": "radio_buttons", "action_id": "kind", "options": options}},
            {"type": "input", "block_id": "reason", "label": plain("Reason"),
             "hint": plain("At least ten characters."), "element": {
                "type": "plain_text_input", "action_id": "reason", "multiline": True}},
            {"type": "input", "block_id": "tell", "label": plain("Also tell"), "optional": True,
             "element": {"type": "users_select", "action_id": "tell"}},
        ],
    }  # fmt: skip


class PageBot:
    """Answer the workspace's requests. `heard` keeps the submitted values."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.heard: list[Json] = []

    async def events(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.content_type == "application/json":
            return self._event(json.loads(body)["event"])
        fields = dict(parse_qsl(body.decode()))
        if "payload" not in fields:
            return self._slash(fields)
        payload = json.loads(fields["payload"])
        if payload["type"] == "view_submission":
            return self._submission(payload)
        return self._click(payload) if payload["type"] == "block_actions" else web.Response()

    def post_card(self, ticket: str, version: int, to: str, letter: str = LETTER) -> str:
        """Post a waiting card to #approvals and return its ts."""
        status = waiting_status(int(self.workspace.now()) + 1800)
        blocks = card(ticket, version, to, letter, status, waiting_buttons(ticket))
        return self._post("C0APPROVALS", blocks)

    def _post(self, channel: str, blocks: list[Json], thread_ts: str | None = None) -> str:
        app = self.workspace.app
        posted = self.workspace.post(
            channel, app.user_id, "A closure", blocks, app=app, thread_ts=thread_ts
        )
        return posted.ts

    def _event(self, event: Json) -> web.Response:
        if event["type"] == "app_home_opened":
            self._show_home(event["user"], "Nothing was reviewed.")
            return web.Response()
        answer = section(said("On it: "), said("ticket 4102", bold=True), said(" is being worked."))
        blocks = [{"type": "rich_text", "elements": [answer]}]
        self._post(event["channel"], blocks, thread_ts=event["ts"])
        return web.Response()

    def _slash(self, fields: dict[str, str]) -> web.Response:
        words = fields.get("text", "").split()
        if words[:1] == ["run"]:
            self.post_card(words[1], 7, "pat@cust.example")
            return web.Response()
        return web.json_response({"text": f"I know *run* and *help*, not `{' '.join(words)}`."})

    def _show_home(self, who: str, text: str) -> None:
        said_to = [said("Of "), user(who), said(f": {text}")]
        blocks = [
            {"type": "rich_text", "elements": [section(*said_to)]},
            {"type": "actions", "elements": [button("review", "Review")]},
        ]
        show_home(self.workspace, who, {"type": "home", "blocks": blocks})

    def _click(self, payload: Json) -> web.Response:
        action, who = payload["actions"][0]["action_id"], payload["user"]["id"]
        if action == "review":
            self._show_home(who, "It was reviewed.")
            return web.Response()
        if action == "why":
            return web.Response(status=500)
        if action == "reject":
            self.workspace.open_view(who, reason_modal())
            return web.Response()
        channel, ts = payload["channel"]["id"], payload["message"]["ts"]
        if who not in ("U0REVIEWER", "U0SECOND"):
            text = "You may not decide this: reviewers of this workspace may."
            self.workspace.whisper(channel, who, text)
            return web.Response()
        message = self.workspace.message(channel, ts)
        assert message is not None
        status = [said("Approved", bold=True), said(" by "), user(who), said(" · closed and sent")]
        decided = card("4101", 7, "pat@cust.example", LETTER, status, [])
        self.workspace.revise(message, "A closure", decided, None)
        return web.Response()

    def _submission(self, payload: Json) -> web.Response:
        values = payload["view"]["state"]["values"]
        self.heard.append(values)
        if len(values["reason"]["reason"]["value"]) < 10:
            errors = {"reason": "A reason has at least ten characters."}
            return web.json_response({"response_action": "errors", "errors": errors})
        return web.Response()
