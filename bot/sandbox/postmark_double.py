"""Postmark on this machine: its send endpoint, its search with a lag, and its webhooks.

Strict where Postmark is known to be strict (Postmark, "API overview", "Custom metadata FAQ" and
support article 1180, 2026), and it takes no field that it does not know. It knows no keys: whatever
is sent twice is delivered twice.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime
from pathlib import Path
from types import TracebackType
from zoneinfo import ZoneInfo

import httpx2
from aiohttp import web

from bot.sandbox.accepted_mail import AcceptedMail, AcceptedMails
from bot.sandbox.clock import Clock, WallClock
from bot.sandbox.model import Json
from bot.sandbox.postmark_rules import (
    MOST_FOUND,
    error,
    recipients_of,
    send_refusal,
    token_refusal,
)
from bot.sandbox.provider_faults import (
    Answer,
    PlannedFault,
    ProviderFaults,
    answer_under,
    put_on_wire,
)
from bot.sandbox.provider_listener import Listener

KEPT_SECONDS = 45 * 86_400.0
TEST_TOKEN = "POSTMARK_API_TEST"  # noqa: S105 - published by Postmark: checks and never sends
_EASTERN = ZoneInfo("America/New_York")
_WEBHOOK_SECONDS = 10.0
_MAX_BODY_BYTES = 10 * 1024 * 1024


class PostmarkDouble:
    """Serve Postmark's API on a free port of 127.0.0.1 while the `async with` lasts."""

    def __init__(
        self,
        *,
        server_token: str = "sandbox-token",  # noqa: S107 - sandbox only
        search_lag_seconds: float = 0.0,
        inactive: frozenset[str] = frozenset(),
        clock: Clock | None = None,
        port: int = 0,
        spool: Path | None = None,
    ) -> None:
        """`inactive` are the addresses that Postmark no longer delivers to.

        With a `spool` file, mails survive a restart.
        """
        self.faults = ProviderFaults()
        self.search_faults = ProviderFaults()
        self.accepted_mails = AcceptedMails(spool)
        self._tokens = frozenset({server_token, TEST_TOKEN})
        self._search_lag_seconds = search_lag_seconds
        self._inactive = inactive
        self._clock = clock or WallClock()
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_post("/email", self._email)
        app.router.add_get("/messages/outbound", self._search)
        self._listener = Listener(app, port)

    @property
    def url(self) -> str:
        """The value for POSTMARK_API_URL."""
        return self._listener.url

    @property
    def accepted(self) -> int:
        """How many requests were accepted."""
        return self.accepted_mails.accepted

    @property
    def mails(self) -> list[AcceptedMail]:
        """What was accepted, in order."""
        return self.accepted_mails.mails

    async def listen(self) -> None:
        """Accept connections, also again after they were refused."""
        await self._listener.listen()

    async def __aenter__(self) -> PostmarkDouble:
        await self.listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._listener.stop()

    def fail(self, fault: PlannedFault, *, call: int | None = None) -> None:
        """Fail at this call of the send endpoint, counted from 1, or at every call.

        REFUSE closes the port, and so the search as well; for other failures of the search, plan
        them in `search_faults`.
        """
        self.faults.plan(fault, call=call)
        if self.faults.refuses_next():
            self._listener.refuse()

    async def send_webhook(
        self,
        url: str,
        mail: AcceptedMail,
        record: str,
        *,
        user: str,
        password: str,
        recipient: str | None = None,
        bounce_type: str = "HardBounce",
    ) -> int:
        """Post a `Delivery`, `Bounce` or `SpamComplaint` and return the status of the answer."""
        body = self.webhook_body(mail, record, recipient=recipient, bounce_type=bounce_type)
        async with httpx2.AsyncClient(
            trust_env=False, timeout=_WEBHOOK_SECONDS, auth=(user, password)
        ) as client:
            headers = {"Content-Type": "application/json"}
            return (await client.post(url, content=body, headers=headers)).status_code

    def webhook_body(
        self,
        mail: AcceptedMail,
        record: str,
        *,
        recipient: str | None = None,
        bounce_type: str = "HardBounce",
    ) -> bytes:
        """Make the body of an event; `send_webhook` posts it with the URL's credential."""
        # Postmark writes seven digits of a second.
        now = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
        who = recipient or mail.recipients[0]
        event: Json = {
            "RecordType": record,
            "MessageStream": mail.fields.get("MessageStream", "outbound"),
            "MessageID": mail.provider_id,
            "Metadata": mail.fields.get("Metadata", {}),
            "ServerID": 23,
            "Tag": "",
        }
        if record == "Delivery":
            event |= {"Recipient": who, "DeliveredAt": now, "Details": "smtp;250 2.0.0 OK"}
        else:
            kind = bounce_type if record == "Bounce" else record
            event |= {"ID": 42, "Type": kind, "Email": who, "BouncedAt": now, "Inactive": True}
        return json.dumps(event).encode()

    async def _email(self, request: web.Request) -> web.StreamResponse:
        planned = self.faults.count()
        if self.faults.refuses_next():
            self._listener.refuse()
        raw = await request.read()
        refused = token_refusal(request, self._tokens) or send_refusal(request, raw)
        test = request.headers.get("X-Postmark-Server-Token") == TEST_TOKEN

        def accept(copies: int) -> Answer:
            return refused or self._accept(raw, copies, test=test)

        answer = await answer_under(planned, self.faults, accept, error)
        return await put_on_wire(request, answer, planned)

    def _accept(self, raw: bytes, copies: int, *, test: bool) -> Answer:
        fields: Json = json.loads(raw)
        recipients = recipients_of(fields)
        active = tuple(who for who in recipients if who not in self._inactive)
        if not active:
            return error(
                422, 406, "You tried to send to recipient(s) that have been marked as inactive."
            )
        mail = AcceptedMail(
            number=self.accepted + 1,
            provider_id=str(uuid.uuid4()),
            raw=raw,
            fields=fields,
            recipients=active,
            accepted_at=self._clock.now(),
            copies=copies,
        )
        if not test:
            self.accepted_mails.keep(mail)
        left_out = ", ".join(who for who in recipients if who in self._inactive)
        message = (
            f"Message OK, but will not deliver to these inactive addresses: {left_out}."
            if left_out
            else "Test job accepted"
            if test
            else "OK"
        )
        return Answer(
            200,
            {
                "To": fields["To"],
                "SubmittedAt": datetime.fromtimestamp(mail.accepted_at, UTC).isoformat(),
                "MessageID": mail.provider_id,
                "ErrorCode": 0,
                "Message": message,
            },
        )

    async def _search(self, request: web.Request) -> web.StreamResponse:
        planned = self.search_faults.count()
        found = token_refusal(request, self._tokens) or self._found(request)
        answer = await answer_under(planned, self.search_faults, lambda _copies: found, error)
        return await put_on_wire(request, answer, planned)

    def _found(self, request: web.Request) -> Answer:
        query = request.query
        wanted = {
            name.removeprefix("metadata_"): value
            for name, value in query.items()
            if name.startswith("metadata_")
        }
        try:
            count, offset = int(query["count"]), int(query["offset"])
            from_day = date.fromisoformat(query["fromdate"]) if "fromdate" in query else None
        except (KeyError, ValueError):
            return error(422, 701, "'count' and 'offset' are required, dates are YYYY-MM-DD.")
        if not 0 <= count <= MOST_FOUND or len(wanted) > 1:
            return error(422, 701, "'count' is at most 500, metadata fields at most one.")
        stream = query.get("messagestream", "outbound")
        found = [
            _listed(mail)
            for mail in reversed(self.mails)
            if self._is_visible(mail)
            and mail.fields.get("MessageStream", "outbound") == stream
            and wanted.items() <= mail.fields.get("Metadata", {}).items()
            and (from_day is None or _eastern(mail.accepted_at).date() >= from_day)
        ]
        return Answer(200, {"TotalCount": len(found), "Messages": found[offset : offset + count]})

    def _is_visible(self, mail: AcceptedMail) -> bool:
        age = self._clock.now() - mail.accepted_at
        return self._search_lag_seconds <= age < KEPT_SECONDS


def _eastern(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, _EASTERN)


def _listed(mail: AcceptedMail) -> Json:
    return {
        "MessageID": mail.provider_id,
        "MessageStream": mail.fields.get("MessageStream", "outbound"),
        "Recipients": list(mail.recipients),
        "ReceivedAt": _eastern(mail.accepted_at).isoformat(),
        "From": mail.fields["From"],
        "Subject": mail.fields.get("Subject", ""),
        "Status": "Sent",
        "Metadata": mail.fields.get("Metadata", {}),
    }
