"""Resend on this machine: its send endpoint with keys, limits and errors, and its webhooks.

Strict where Resend is known to be strict (Resend, "Send email", "Errors", "Idempotency keys", 2026;
resend-openapi 1.5.0), and it takes no field that it does not know. What it counts as accepted is
what Resend would have sent, whether or not the caller learnt of it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import httpx2
from aiohttp import web

from bot.sandbox.accepted_mail import AcceptedMail, AcceptedMails
from bot.sandbox.clock import Clock, WallClock
from bot.sandbox.model import Json
from bot.sandbox.provider_faults import (
    Answer,
    PlannedFault,
    ProviderFaults,
    answer_under,
    put_on_wire,
)
from bot.sandbox.provider_listener import Listener
from bot.sandbox.resend_rules import error, recipients_of, refusal

KEY_SECONDS = 86_400.0
WEBHOOK_SECRET = "whsec_c2lnbm9mZi1zYW5kYm94LXJlc2VuZC1zZWNyZXQ="  # noqa: S105 - sandbox only
_WEBHOOK_SECONDS = 10.0
_MAX_BODY_BYTES = 40 * 1024 * 1024


@dataclass
class _KeyUse:
    """What is remembered of a key; `answer` is `None` while its request is being worked on."""

    body_sha256: bytes
    first_seen: float
    answer: Answer | None = None


class ResendDouble:
    """Serve Resend's API on a free port of 127.0.0.1 while the `async with` lasts."""

    def __init__(
        self,
        *,
        api_key: str = "re_sandbox",
        verified_domains: frozenset[str] | None = None,
        clock: Clock | None = None,
        port: int = 0,
        spool: Path | None = None,
    ) -> None:
        """`verified_domains` are those that may send; `None` is all of them.

        With a `spool` file, mails and keys survive a restart.
        """
        self.faults = ProviderFaults()
        self.accepted_mails = AcceptedMails(spool)
        self._api_key = api_key
        self._verified_domains = verified_domains
        self._clock = clock or WallClock()
        self._keys: dict[str, _KeyUse] = {
            mail.key: _KeyUse(hashlib.sha256(mail.raw).digest(), mail.accepted_at, _accepted(mail))
            for mail in self.mails
            if mail.key is not None
        }
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._listener = Listener(app, port)

    @property
    def url(self) -> str:
        """The value for RESEND_API_URL."""
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

    async def __aenter__(self) -> ResendDouble:
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
        """Fail at this call, counted from 1, or at every call."""
        self.faults.plan(fault, call=call)
        if self.faults.refuses_next():
            self._listener.refuse()

    async def send_webhook(
        self,
        url: str,
        mail: AcceptedMail,
        event: str,
        *,
        secret: str = WEBHOOK_SECRET,
        event_id: str | None = None,
        **more: Json,
    ) -> int:
        """Post a signed event such as `email.delivered` and return the status of the answer.

        `more` goes into its data, e.g. `bounce={"type": "Permanent", "subType": "General"}`.
        """
        body, headers = self.webhook(mail, event, secret=secret, event_id=event_id, **more)
        async with httpx2.AsyncClient(trust_env=False, timeout=_WEBHOOK_SECONDS) as client:
            return (await client.post(url, content=body, headers=headers)).status_code

    def webhook(
        self,
        mail: AcceptedMail,
        event: str,
        *,
        secret: str = WEBHOOK_SECRET,
        event_id: str | None = None,
        **more: Json,
    ) -> tuple[bytes, dict[str, str]]:
        """Make the body and the headers of a signed event; `send_webhook` posts them."""
        now = self._clock.now()
        tags = {tag["name"]: tag["value"] for tag in mail.fields.get("tags", [])}
        data = {
            "email_id": mail.provider_id,
            "created_at": _stamp(mail.accepted_at),
            "from": mail.fields["from"],
            "to": list(mail.recipients),
            "subject": mail.fields["subject"],
            "tags": tags,
            **more,
        }
        document = {"type": event, "created_at": _stamp(now), "data": data}
        body = json.dumps(document).encode()
        identifier, timestamp = event_id or f"msg_{uuid.uuid4().hex}", str(int(now))
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{identifier}.{timestamp}.".encode() + body
        mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return body, {
            "Content-Type": "application/json",
            "svix-id": identifier,
            "svix-timestamp": timestamp,
            "svix-signature": f"v1,{mac}",
        }

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        planned = self.faults.count()
        if self.faults.refuses_next():
            self._listener.refuse()
        raw = await request.read()
        refused = refusal(request, raw, self._api_key, self._verified_domains)
        if refused is not None:
            answer = await answer_under(planned, self.faults, lambda _copies: refused, error)
            return await put_on_wire(request, answer, planned)
        key = request.headers.get("Idempotency-Key")
        known = self._known(key, raw)
        if known is not None:
            answer = await answer_under(planned, self.faults, lambda _copies: known, error)
            return await put_on_wire(request, answer, planned)
        try:
            answer = await answer_under(
                planned, self.faults, lambda copies: self._accept(key, raw, copies), error
            )
        finally:
            self._forget_unanswered(key)
        return await put_on_wire(request, answer, planned)

    def _known(self, key: str | None, raw: bytes) -> Answer | None:
        """Answer for a key that was seen before; else begin to remember it."""
        if key is None:
            return None
        now, sha256 = self._clock.now(), hashlib.sha256(raw).digest()
        use = self._keys.get(key)
        if use is None or now - use.first_seen >= KEY_SECONDS:
            self._keys[key] = _KeyUse(sha256, now)
            return None
        if use.body_sha256 != sha256:
            return error(409, "invalid_idempotent_request")
        return use.answer or error(409, "concurrent_idempotent_requests")

    def _accept(self, key: str | None, raw: bytes, copies: int) -> Answer:
        fields: Json = json.loads(raw)
        mail = AcceptedMail(
            number=self.accepted + 1,
            provider_id=str(uuid.uuid4()),
            raw=raw,
            fields=fields,
            recipients=recipients_of(fields),
            accepted_at=self._clock.now(),
            key=key,
            copies=copies,
        )
        self.accepted_mails.keep(mail)
        if key is not None:
            self._keys[key].answer = _accepted(mail)
        return _accepted(mail)

    def _forget_unanswered(self, key: str | None) -> None:
        """Let go of a key whose request came to nothing."""
        use = None if key is None else self._keys.get(key)
        if key is not None and use is not None and use.answer is None:
            del self._keys[key]


def _accepted(mail: AcceptedMail) -> Answer:
    return Answer(200, {"id": mail.provider_id})


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
