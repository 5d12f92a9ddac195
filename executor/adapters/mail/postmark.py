"""Mail by Postmark: no keys, but every mail can be searched by the effect that it belongs to.

What an answer proves: Postmark's own errors carry ``ErrorCode`` and ``Message``. The code is read
from the body, never from the status, since Postmark's numbers look like statuses and mean other
things (405 is "not allowed to send"). A loss proves nothing, and Postmark says of its own 500 only
that the mail is *usually* lost (Postmark, "API overview", 2026).

A search that finds nothing proves nothing either: Postmark does not say how soon an accepted mail
can be found. Postmark may replace our ``Message-ID`` by one of its own; ``Date`` is always its own.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import SecretStr

from executor.adapters.http_exchange import (
    Answered,
    Lost,
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
from executor.domain.email import EmailContent, Mailbox
from executor.domain.payloads import canonical
from executor.engine.ports import Lookup, LookupKind, OutgoingMail

POSTMARK_API_URL = "https://api.postmarkapp.com"
DEFAULT_STREAM = "outbound"

LONGEST_REQUEST_SECONDS = 60.0
"""Default bound of one ``send`` or ``look_up``."""

LOOKUP_LAG_SECONDS = 300.0
"""Default of how long an accepted mail may stay invisible; Postmark names no bound."""

TEST_TOKEN = "POSTMARK_API_TEST"  # noqa: S105 - published by Postmark: it validates, sends nothing

_MAINTENANCE, _RATE_LIMITED = 100, 429
_HIGHEST_CODE = 99_999
_MOST_FOUND = 10
# Dates of a search are days of the American East; a reference is unique, so a wide net is harmless.
_DAYS_EARLIER = timedelta(days=1)


DECLARED = Declaration(
    "Postmark",
    EffectKind.EMAIL_SEND,
    Capability.LOOKUP,
    "whoever can look into Postmark's activity",
    lookup_lag=timedelta(seconds=LOOKUP_LAG_SECONDS),
    # Postmark's default, 2026.
    lookup_retention=timedelta(days=45),
)


class PostmarkMail(JsonMail):
    """One server at Postmark; implements ``SearchableMail``."""

    def __init__(
        self,
        server_token: SecretStr,
        *,
        api_url: str = POSTMARK_API_URL,
        account: str | None = None,
        message_stream: str = DEFAULT_STREAM,
        lookup_lag_seconds: float = LOOKUP_LAG_SECONDS,
        longest_request_seconds: float = LONGEST_REQUEST_SECONDS,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        """``account`` names the server in intents where the host does not tell it apart.

        Raises ``ValueError`` that never holds the token.
        """
        endpoint = parse_endpoint(api_url, setting="POSTMARK_API_URL")
        token = require_secret(server_token.get_secret_value(), setting="POSTMARK_SERVER_TOKEN")
        self._server_token = SecretStr(token)
        self._message_stream = message_stream
        declaration = replace(
            DECLARED,
            lookup_lag=timedelta(seconds=lookup_lag_seconds),
            rehearses=token == TEST_TOKEN,
        )
        super().__init__(declaration, endpoint, account, longest_request_seconds, tls_context)

    def freeze(self, content: EmailContent, reference: str) -> bytes:
        """Make the canonical JSON body of ``POST /email``, with all tracking off."""
        validate_for_json(content, reference)
        headers = [("Message-ID", content.message_id), *content.headers]
        return canonical(
            {
                "From": spelled(content.sender),
                "To": _joined(content.to),
                "Subject": content.subject,
                "TextBody": content.text,
                "Headers": [{"Name": name, "Value": value} for name, value in headers],
                "Metadata": {REFERENCE_NAME: reference},
                "MessageStream": self._message_stream,
                "TrackOpens": False,
                "TrackLinks": "None",
                **({"Cc": _joined(content.cc)} if content.cc else {}),
                **({"Bcc": _joined(content.bcc)} if content.bcc else {}),
                **({"ReplyTo": spelled(content.reply_to)} if content.reply_to else {}),
                **({} if content.html is None else {"HtmlBody": content.html}),
            }
        )

    async def send(self, mail: OutgoingMail) -> Outcome:
        """Send the frozen body once."""

        def concluded(answer: Answered) -> Outcome:
            return self._concluded(answer, mail)

        return await self._posted("/email", self._credentials(), mail.payload, concluded)

    async def look_up(self, reference: str, since: datetime) -> Lookup:
        """Search once for the mail with ``reference`` that left at ``since`` or later."""
        query = {
            "count": str(_MOST_FOUND),
            "offset": "0",
            f"metadata_{REFERENCE_NAME}": reference,
            "fromdate": (since.astimezone(UTC) - _DAYS_EARLIER).date().isoformat(),
            # Without it only the stream "outbound" is searched.
            "messagestream": self._message_stream,
        }
        ending = await self._exchanges.get("/messages/outbound", self._credentials(), query)
        if not isinstance(ending, Answered):
            phase = ending.phase if isinstance(ending, Lost) else Phase.CONNECT
            return self._failed(phase, ending.problem)
        return self._looked_up(ending, reference)

    def _credentials(self) -> dict[str, str]:
        return {"x-postmark-server-token": self._server_token.get_secret_value()}

    def _concluded(self, answer: Answered, mail: OutgoingMail) -> Outcome:
        body = json_body(answer)
        code = _error_code(body)
        if 200 <= answer.status < 300 and not code:
            return self._accepted(answer, body or {}, mail)
        if not code:
            return proves_nothing(self.provider, answer, code)
        refusing = answer.status < 300 or answer.status in REFUSING_STATUSES | {429}
        if not refusing:
            return proves_nothing(self.provider, answer, code)
        return Outcome(
            OutcomeKind.NOT_APPLIED,
            answer_evidence(self.provider, answer, code=code),
            retryable=code in (_MAINTENANCE, _RATE_LIMITED),
            retry_after=answer.retry_after,
        )

    def _accepted(self, answer: Answered, body: Mapping[str, Any], mail: OutgoingMail) -> Outcome:
        outcome = accepted(self.provider, answer, provider_id(body.get("MessageID")))
        left_out = _left_out(body.get("Message"), mail.envelope_to)
        if outcome.kind is OutcomeKind.APPLIED and left_out:
            problem = "accepted, but not for recipients that Postmark holds to be inactive"
            evidence = {**outcome.evidence, "problem": problem, "refused": left_out}
            return Outcome(OutcomeKind.APPLIED, evidence)
        return outcome

    def _looked_up(self, answer: Answered, reference: str) -> Lookup:
        messages = (json_body(answer) or {}).get("Messages")
        if answer.status != 200 or not isinstance(messages, list):
            return self._failed(
                Phase.ANSWER, f"the search answered {answer.status}", answer.retry_after
            )
        ours = [message for message in messages if _carries(message, reference)]
        if len(ours) != len(messages):
            # Whoever answers with other mails did not search for ours.
            return self._failed(Phase.ANSWER, "the search answered with mails of other references")
        evidence = answer_evidence(
            self.provider,
            answer,
            found=len(ours),
            ids=[provider_id(message.get("MessageID")) for message in ours] or None,
        )
        return Lookup(LookupKind.FOUND if ours else LookupKind.NOT_FOUND, evidence)

    def _failed(self, phase: Phase, problem: str, retry_after: timedelta | None = None) -> Lookup:
        evidence = {"provider": self.provider, "phase": phase.value, "problem": problem}
        return Lookup(LookupKind.FAILED, evidence, retry_after)


def _joined(boxes: Sequence[Mailbox]) -> str:
    return ", ".join(spelled(box) for box in boxes)


def _error_code(body: Mapping[str, Any] | None) -> int | None:
    """Read the code of an answer in Postmark's own shape; 0 is success."""
    if body is None or not isinstance(body.get("Message"), str):
        return None
    code = body.get("ErrorCode")
    return code if type(code) is int and 0 <= code <= _HIGHEST_CODE else None


def _left_out(message: object, envelope_to: Sequence[str]) -> list[str]:
    """Find whom an acceptance leaves out; Postmark says so only in the sentence beside the code.

    "Message OK, but will not deliver to these inactive addresses: …"
    """
    if not isinstance(message, str) or "inactive" not in message.lower():
        return []
    named = {word.strip(",;.<>") for word in message.lower().split()}
    return [address for address in envelope_to if address.lower() in named]


def _carries(message: object, reference: str) -> bool:
    """Tell whether a found mail bears our reference."""
    metadata = message.get("Metadata") if isinstance(message, dict) else None
    return isinstance(metadata, dict) and metadata.get(REFERENCE_NAME) == reference
