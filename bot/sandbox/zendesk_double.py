"""Zendesk over HTTP, in the sandbox: show a ticket, list its audits, update it; strict about it.

Bodies of refusals are Zendesk's own (API reference, *Introduction* and *Tickets*, read 2026-11;
the two kinds of 409 as reported in zendesk_api_client_php#314 and by the safe update itself).
Attributes that Zendesk would silently drop are refused here, so that no test passes on one.
"""

from __future__ import annotations

import base64
import hmac
import json
from pathlib import Path
from types import TracebackType

from aiohttp import web

from bot.sandbox.clock import Clock
from bot.sandbox.desk_faults import CHANGE, READ, DeskAnswer, DeskFaults
from bot.sandbox.model import Json
from bot.sandbox.provider_listener import Listener
from bot.sandbox.zendesk_account import (
    FIELDS,
    OUR_AGENT,
    STATUSES,
    AccountTicket,
    Triggers,
    ZendeskAccount,
)

EMAIL, TOKEN = "bot@acme.example", "zd-secret-token"
_ATTRIBUTES = frozenset({*FIELDS, "comment", "safe_update", "updated_stamp"})
_LARGEST_PAGE = 100


class ZendeskWords:
    """Zendesk's refusals."""

    def refused(self) -> DeskAnswer:
        """The agent may not."""
        message = "You do not have access to this page. Please contact the account owner."
        return _answer(403, {"error": {"title": "Forbidden", "message": message}})

    def limited(self, seconds: int | None) -> DeskAnswer:
        """Too many requests; in plain text, as the reference shows it."""
        more = {} if seconds is None else {"Retry-After": str(seconds)}
        text = "Number of allowed API requests per minute exceeded"
        return DeskAnswer(429, text, {"X-Zendesk-Request-Id": "sandbox", **more})

    def collision(self) -> DeskAnswer:
        """Its database collided with itself."""
        return _answer(409, {"error": "DatabaseConflict", "description": "Database collision"})

    def broken(self) -> DeskAnswer:
        """Something is wrong in there."""
        return _answer(500, {"error": "InternalServerError", "description": "Something went wrong"})


class ZendeskDouble:
    """Serve one account while the ``async with`` lasts, and count what was asked and done."""

    def __init__(
        self,
        clock: Clock,
        triggers: Triggers | None = None,
        *,
        port: int = 0,
        spool: Path | None = None,
    ) -> None:
        """With a ``spool`` file, the account survives a restart."""
        self.account = ZendeskAccount(clock, triggers or Triggers(), spool)
        self.faults = DeskFaults(ZendeskWords())
        self.applied = 0
        self.conflicts = 0
        self.updates: list[Json] = []
        app = web.Application(client_max_size=4 * 1024 * 1024)
        app.router.add_get("/api/v2/tickets/{ticket}.json", self._show)
        app.router.add_get("/api/v2/tickets/{ticket}/audits.json", self._list_audits)
        app.router.add_put("/api/v2/tickets/{ticket}.json", self._put)
        self.listener = Listener(app, port)

    @property
    def url(self) -> str:
        """Where the account is served."""
        return self.listener.url

    async def __aenter__(self) -> ZendeskDouble:
        await self.listener.listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.faults.release()
        await self.listener.stop()

    async def _show(self, request: web.Request) -> web.StreamResponse:
        def act() -> DeskAnswer:
            ticket = self._ticket(request)
            if isinstance(ticket, DeskAnswer):
                return ticket
            users = [self.account.users[ticket.record["requester_id"]]]
            sideload = {"users": users} if request.query.get("include") == "users" else {}
            return _answer(200, {"ticket": ticket.record, **sideload})

        return await self.faults.serve(request, READ, act)

    async def _list_audits(self, request: web.Request) -> web.StreamResponse:
        def act() -> DeskAnswer:
            ticket = self._ticket(request)
            if isinstance(ticket, DeskAnswer):
                return ticket
            return self._page(request, ticket)

        return await self.faults.serve(request, READ, act)

    async def _put(self, request: web.Request) -> web.StreamResponse:
        octets = await request.read()

        def act() -> DeskAnswer:
            ticket = self._ticket(request)
            if isinstance(ticket, DeskAnswer):
                return ticket
            try:
                changes = json.loads(octets)["ticket"]
            except (ValueError, KeyError, TypeError):
                return _invalid("Unprocessable JSON")
            self.updates.append(changes)
            return self._update(ticket, changes)

        return await self.faults.serve(request, CHANGE, act)

    def _ticket(self, request: web.Request) -> AccountTicket | DeskAnswer:
        wanted = base64.b64encode(f"{EMAIL}/token:{TOKEN}".encode()).decode()
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Basic {wanted}".encode()):
            return _answer(401, {"error": "Couldn't authenticate you"})
        number = request.match_info["ticket"]
        ticket = self.account.tickets.get(int(number)) if number.isdigit() else None
        if ticket is None:
            return _answer(404, {"error": "RecordNotFound", "description": "Not found"})
        return ticket

    def _page(self, request: web.Request, ticket: AccountTicket) -> DeskAnswer:
        size = int(request.query.get("page[size]", "0"))
        if not 1 <= size <= _LARGEST_PAGE:
            return _invalid("page[size] must be from 1 to 100")
        start = int(request.query.get("page[after]", "0"))
        newest_first = request.query.get("sort") == "-created_at"
        audits = ticket.audits[::-1] if newest_first else ticket.audits
        shown = audits[start : start + size]
        more = start + size < len(audits)
        return _answer(
            200,
            {
                "audits": shown,
                "users": [self.account.users[n] for n in {audit["author_id"] for audit in shown}],
                "meta": {"has_more": more, "after_cursor": str(start + size) if more else None},
            },
        )

    def _update(self, ticket: AccountTicket, changes: Json) -> DeskAnswer:
        problem = _problem(changes)
        if problem is not None:
            return _invalid(problem)
        if ticket.record["status"] == "closed":
            details = {"status": [{"description": "Status: closed prevents ticket update"}]}
            invalid = {"error": "RecordInvalid", "description": "Record validation errors"}
            return _answer(422, {**invalid, "details": details})
        stale = changes.get("updated_stamp") != ticket.record["updated_at"]
        if changes.get("safe_update") is True and stale:
            self.conflicts += 1
            said = (
                "Safe Update prevented the update due to outdated ticket data. "
                "Please fetch the latest ticket data and try again."
            )
            return _answer(409, {"error": "UpdateConflict", "description": said})
        audit = self.account.update(ticket.record["id"], OUR_AGENT, changes)
        self.applied += 1
        return _answer(200, {"ticket": dict(ticket.record), "audit": audit})


def _problem(changes: object) -> str | None:
    if not isinstance(changes, dict):
        return "ticket must be an object"
    unknown = sorted(set(changes) - _ATTRIBUTES)
    if unknown:
        return f"unknown attributes: {', '.join(unknown)}"
    if changes.get("status", "open") not in STATUSES:
        return "no such status"
    tags = changes.get("tags", [])
    if not isinstance(tags, list) or any(not isinstance(tag, str) or " " in tag for tag in tags):
        return "tags must be words"
    comment = changes.get("comment", {"body": "-"})
    if not isinstance(comment, dict) or not comment.get("body"):
        return "a comment needs a body"
    if ("safe_update" in changes) != ("updated_stamp" in changes):
        return "safe_update and updated_stamp go together"
    return None


def _invalid(message: str) -> DeskAnswer:
    return _answer(400, {"error": {"title": "Invalid attribute", "message": message}})


def _answer(status: int, body: Json) -> DeskAnswer:
    return DeskAnswer(status, body, {"X-Zendesk-Request-Id": "sandbox", "X-Rate-Limit": "700"})
