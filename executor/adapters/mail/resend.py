"""Mail by Resend: a key makes repeats harmless for a day, and nothing but the frozen body is sent.

What an answer proves: an error in Resend's own shape (``name``, ``message``, ``statusCode``) with a
status that precedes acceptance means not sent; 2xx means accepted; everything else once the request
began to leave proves nothing (Resend, "Errors" and "Idempotency keys", 2026). Two conflicts are
kept apart: ``concurrent_idempotent_requests`` says that an earlier request with our key is still
being worked on, ``invalid_idempotent_request`` that one with our key and *other bytes* was seen,
which must never happen and is never retried.

Open and click tracking are settings of the domain at Resend, not of a mail: they have to be off
there, or what arrives is not what was approved. ``Date`` is Resend's, and it may replace our
``Message-ID``.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic import SecretStr

from executor.adapters.http_exchange import (
    Answered,
    Phase,
    parse_endpoint,
    require_secret,
)
from executor.adapters.mail.json_mail import (
    REFERENCE_NAME,
    REFUSING_STATUSES,
    JsonMail,
    accepted,
    answer_evidence,
    json_body,
    proves_nothing,
    provider_id,
    spelled,
    validate_for_json,
)
from executor.domain.declaration import Declaration
from executor.domain.effect import Capability, EffectKind, Outcome, OutcomeKind
from executor.domain.email import EmailContent
from executor.domain.errors import InvalidContent
from executor.domain.payloads import JsonValue, canonical
from executor.engine.ports import OutgoingMail

RESEND_API_URL = "https://api.resend.com"

LONGEST_REQUEST_SECONDS = 60.0
"""Default bound of one ``send``."""

CONCURRENT = "concurrent_idempotent_requests"
OTHER_BYTES = "invalid_idempotent_request"

_ASK_AGAIN_AFTER = timedelta(seconds=5)
_KEY = re.compile(r"[\x21-\x7e]{1,256}")
_ERROR_NAME = re.compile(r"[a-z0-9_]{1,80}")


DECLARED = Declaration(
    "Resend",
    EffectKind.EMAIL_SEND,
    Capability.KEYED,
    "whoever can look into Resend's list of emails",
    # Resend, "Idempotency keys", 2026.
    key_window=timedelta(hours=24),
)


class ResendMail(JsonMail):
    """One account at Resend; implements ``MailPort``."""

    def __init__(
        self,
        api_key: SecretStr,
        *,
        api_url: str = RESEND_API_URL,
        account: str | None = None,
        longest_request_seconds: float = LONGEST_REQUEST_SECONDS,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        """``account`` names the account in intents where the host does not tell it apart.

        Raises ``ValueError`` that never holds the key.
        """
        endpoint = parse_endpoint(api_url, setting="RESEND_API_URL")
        key = require_secret(api_key.get_secret_value(), setting="RESEND_API_KEY")
        self._api_key = SecretStr(key)
        super().__init__(DECLARED, endpoint, account, longest_request_seconds, tls_context)

    def freeze(self, content: EmailContent, reference: str) -> bytes:
        """Make the canonical JSON body of ``POST /emails``; the reference is its one tag."""
        validate_for_json(content, reference)
        return canonical(
            {
                "from": spelled(content.sender),
                "to": [spelled(box) for box in content.to],
                "subject": content.subject,
                "text": content.text,
                "headers": _headers(content),
                "tags": [{"name": REFERENCE_NAME, "value": reference}],
                **({"cc": [spelled(box) for box in content.cc]} if content.cc else {}),
                **({"bcc": [spelled(box) for box in content.bcc]} if content.bcc else {}),
                **({"reply_to": [spelled(content.reply_to)]} if content.reply_to else {}),
                **({} if content.html is None else {"html": content.html}),
            }
        )

    async def send(self, mail: OutgoingMail) -> Outcome:
        """Send the frozen body once, under the effect's key."""
        if not _KEY.fullmatch(mail.idempotency_key):
            return Outcome(
                OutcomeKind.NOT_APPLIED,
                {
                    "provider": self.provider,
                    "phase": Phase.CONNECT.value,
                    "problem": "the key is not one that Resend takes",
                },
            )
        headers = {
            "authorization": f"Bearer {self._api_key.get_secret_value()}",
            "idempotency-key": mail.idempotency_key,
        }
        return await self._posted("/emails", headers, mail.payload, self._concluded)

    def _concluded(self, answer: Answered) -> Outcome:
        body = json_body(answer)
        if 200 <= answer.status < 300:
            return accepted(self.provider, answer, provider_id((body or {}).get("id")))
        name = _error_name(answer, body)
        if name is None:
            return proves_nothing(self.provider, answer, None)
        evidence = answer_evidence(self.provider, answer, code=name)
        if answer.status == 429:
            return Outcome(
                OutcomeKind.NOT_APPLIED, evidence, retryable=True, retry_after=answer.retry_after
            )
        if answer.status in REFUSING_STATUSES:
            return Outcome(OutcomeKind.NOT_APPLIED, evidence)
        if answer.status == 409 and name == CONCURRENT:
            return Outcome(
                OutcomeKind.UNKNOWN, evidence, retry_after=answer.retry_after or _ASK_AGAIN_AFTER
            )
        if answer.status == 409 and name == OTHER_BYTES:
            problem = "a request with our key and other bytes was seen before"
            return Outcome(
                OutcomeKind.UNKNOWN,
                answer_evidence(self.provider, answer, code=name, stop=True, problem=problem),
            )
        return proves_nothing(self.provider, answer, name)


def _headers(content: EmailContent) -> dict[str, JsonValue]:
    """Collect the mail's further headers; an object can hold each name only once."""
    headers: dict[str, JsonValue] = {"Message-ID": content.message_id}
    seen: set[str] = set()
    for name, value in content.headers:
        if name.lower() in seen:
            raise InvalidContent(
                f"headers.{name}", "it is given more than once", "Resend carries each header once."
            )
        seen.add(name.lower())
        headers[name] = value
    return headers


def _error_name(answer: Answered, body: Mapping[str, Any] | None) -> str | None:
    """Read the name of an error in Resend's own shape; ``None`` when it is anybody else's."""
    if body is None:
        return None
    name, status = body.get("name"), body.get("statusCode")
    if not isinstance(name, str) or not _ERROR_NAME.fullmatch(name):
        return None
    if type(status) is not int or status != answer.status:
        return None
    return name if isinstance(body.get("message"), str) else None
