"""A world for the sandbox's page: believable mails, tickets and a run, and a server to see them.

`python -m tests.support.page_world 8087` serves it on that port until it is interrupted.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from bot.sandbox.page import JsonObject, add_page
from bot.sandbox.slack_server import routes
from bot.sandbox.workspace import Workspace
from tests.support.page_bot import HOSTILE, LETTER, PageBot, card, said, user

HTML = (
    '<div style="font: 15px/1.5 sans-serif; color: #222; max-width: 32em"><p>Hello Pat,</p>'
    "<p>we refunded the duplicate charge of <b>24.90 EUR</b> today. It reaches your account within "
    "three working days.</p><p>We close this ticket now. If anything is left open, answer this "
    "mail and it opens again.</p><p>Kind regards,<br>Acme Support</p></div>"
    "<script>document.title = 'broken'</script><img src=\"https://tracker.example/pixel.gif\">"
)
GERMAN = (
    "Guten Tag Frau Öztürk,\n\nIhre Rechnung wurde korrigiert und liegt im Kundenbereich bereit. "
    "Wir schließen das Ticket 4099 hiermit.\n\nFreundliche Grüße\nAcme Support"
)
JAPANESE = (
    "山田様\n\nお問い合わせの件は解決いたしましたので、チケット4098を終了します。\n\nAcme サポート"
)


def mail(number: int, to: str, subject: str, text: str, html: str | None, at: str) -> JsonObject:
    raw = (
        f"From: Acme Support <support@acme.example>\r\nTo: {to}\r\nSubject: {subject}\r\n"
        f"Message-ID: <op-{number}@acme.example>\r\nMIME-Version: 1.0\r\n"
        f"Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n"
    )
    return {
        "id": f"m{number}", "from": "Acme Support <support@acme.example>", "to": [to],
        "subject": subject, "date": at, "text": text, "html": html, "raw": raw,
        "sha256": hashlib.sha256(raw.encode()).hexdigest(),
    }  # fmt: skip


def entry(second: int, kind: str, title: str, text: str, state: str) -> JsonObject:
    at = f"2026-12-01T09:{40 + second // 60:02}:{second % 60:02}+00:00"
    return {"at": at, "kind": kind, "title": title, "text": text, "state": state}


def waiting_run() -> list[JsonObject]:
    return [
        entry(0, "step", "Riko asked to close ticket 4101", "", "queued"),
        entry(1, "step", "The model read the ticket", "ticket.read 4101", "done"),
        entry(4, "step", "The model asked for the closure", "close_ticket 4101, version 7", "done"),
        entry(4, "move", "The proposal was accepted", "Frozen with digest 9f2c 41d8.", "awaiting"),
        entry(5, "note", "The card was shown in #approvals", "Time to decide: 30 minutes.", ""),
    ]


def unknown_run() -> list[JsonObject]:
    return [
        entry(0, "step", "Riko asked to close ticket 4100", "", "queued"),
        entry(6, "move", "The proposal was accepted", "Frozen with digest 77aa 0b1c.", "awaiting"),
        entry(31, "decision", "Rene approved", "One of one vote.", "granted"),
        entry(32, "attempt", "Close ticket 4100", "Attempt 1: version 3 became 4.", "applied"),
        entry(33, "attempt", "Send the email", "Attempt 1: the answer was lost.", "unknown"),
        entry(93, "note", f"Customer wrote {HOSTILE}", "Nothing is sent twice.", ""),
    ]


@dataclass
class PageWorld:
    """The world that the page asks, kept in memory."""

    letters: list[JsonObject]
    desk: dict[str, JsonObject]
    past: dict[int, list[JsonObject]]

    async def mails(self) -> list[JsonObject]:
        return self.letters

    async def tickets(self) -> list[JsonObject]:
        return list(self.desk.values())

    async def reply_as_customer(self, ticket: str, body: str) -> JsonObject | None:
        return self._change(ticket, "open")

    async def reopen(self, ticket: str) -> JsonObject | None:
        return self._change(ticket, "open")

    async def runs(self) -> list[JsonObject]:
        return [
            {"number": 12, "status": "waiting", "title": "close ticket 4101"},
            {"number": 11, "status": "waiting", "title": "close ticket 4100"},
        ]

    async def timeline(self, number: int) -> list[JsonObject] | None:
        return self.past.get(number)

    def _change(self, ticket: str, status: str) -> JsonObject | None:
        found = self.desk.get(ticket)
        if found is not None:
            found |= {"version": found["version"] + 1, "status": status}
        return found


def believable() -> PageWorld:
    tickets = [
        ("4101", 7, "open", "Charged twice for November"),
        ("4102", 3, "open", "Cannot sign in after the password change"),
        ("4100", 4, "closed", "Invoice shows the old address"),
        ("4103", 5, "pending", "إلغاء الاشتراك السنوي"),
    ]
    return PageWorld(
        letters=[
            mail(1, "yamada@cust.example", "チケット4098を終了しました", JAPANESE, None,
                 "2026-12-01T08:58:00+00:00"),
            mail(2, "oeztuerk@cust.example", "Ticket 4099 geschlossen", GERMAN, None,
                 "2026-12-01T09:12:00+00:00"),
            mail(3, "Pat Doe <pat@cust.example>", "Ticket 4100 closed", LETTER, HTML,
                 "2026-12-01T09:40:33+00:00"),
        ],
        desk={
            t[0]: {"id": t[0], "version": t[1], "status": t[2], "subject": t[3]} for t in tickets
        },
        past={12: waiting_run(), 11: unknown_run()},
    )  # fmt: skip


def fill(workspace: Workspace, bot: PageBot) -> None:
    """Post what a busy morning leaves behind: decided, unknown, hostile and waiting cards."""
    approvals, app = "C0APPROVALS", workspace.app
    workspace.post(approvals, "U0REQUESTER", f"<@{app.user_id}> close 4099")
    done = [said("Approved", bold=True), said(" by "), user("U0SECOND"), said(" · closed, sent")]
    decided = card("4099", 2, "oeztuerk@cust.example", GERMAN, done, [])
    message = workspace.post(approvals, app.user_id, "A closure", decided, app=app)
    workspace.revise(message, "A closure", decided, None)
    workspace.post(approvals, "U0SECOND", "Checked the invoice, it is right.",
                   thread_ts=message.ts)  # fmt: skip
    workspace.post(approvals, "U0REQUESTER", "Thank you, *Sam*!", thread_ts=message.ts)
    lost = [said("Not known", bold=True), said(": the mail provider's answer was lost. "),
            said("It is being looked up; nothing is sent twice.")]  # fmt: skip
    blocks = card("4100", 3, "pat@cust.example", HOSTILE, lost, [
        {"type": "button", "action_id": "why", "text": {"type": "plain_text", "text": "Look again",
         "emoji": False}, "value": "x"}])  # fmt: skip
    workspace.post(approvals, app.user_id, "A closure", blocks, app=app)
    bot.post_card("4101", 7, "pat@cust.example")
    workspace.whisper(approvals, "U0REQUESTER", "Run *#12* works on ticket 4101.")


@asynccontextmanager
async def serving(
    world: PageWorld, workspace: Workspace, bot: PageBot, port: int = 0
) -> AsyncIterator[str]:
    """Serve page, workspace and bot on one port of 127.0.0.1; yield the URL."""
    app = web.Application()
    add_page(app, world)
    app.add_routes(routes(workspace))
    app.router.add_post("/slack/events", bot.events)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        workspace.public_url = url
        workspace.connect(url)
        yield url
    finally:
        workspace.close()
        await workspace.event_retries.stop()
        await runner.cleanup()


async def main(port: int) -> None:
    workspace = Workspace.seeded()
    bot = PageBot(workspace)
    fill(workspace, bot)
    async with serving(believable(), workspace, bot, port) as url:
        sys.stdout.write(f"{url}\n")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
