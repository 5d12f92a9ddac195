"""What the two JSON providers have in common: how an email is spelled, and what an answer proves.

Content that SMTP would refuse is refused here as well, so that changing the provider does not
change what may be said. An answer is believed to be the provider's only in the provider's own
shape; a proxy's page on the way is nobody's word.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from executor.adapters.http_exchange import (
    Answered,
    Endpoint,
    Exchanges,
    Lost,
    NeverLeft,
    Phase,
)
from executor.domain.address import refuse_smtputf8
from executor.domain.declaration import Declaration
from executor.domain.effect import Capability, Outcome, OutcomeKind
from executor.domain.email import EmailContent, Mailbox
from executor.domain.errors import InvalidContent
from executor.domain.frozen_email import freeze
from executor.domain.payloads import JsonObject, JsonValue

REFERENCE_NAME = "signoff_effect"
"""The tag or metadata field that carries an effect's id."""

MOST_RECIPIENTS = 50
"""Recipients of one mail: 50 at Postmark (support article 1180), 50 in a field at Resend."""

REFUSING_STATUSES = frozenset({400, 401, 403, 404, 405, 413, 415, 422})
"""Statuses that precede acceptance, in the provider's own words; see ``is_foreign``."""

_REFERENCE = re.compile(r"[A-Za-z0-9_-]{1,80}")
_PLAIN_NAME = re.compile(r"[\w !#$%&'*+/=?^{|}~-]+")
_PROVIDER_ID = re.compile(r"[A-Za-z0-9-]{1,100}")


class JsonMail:
    """One account at a provider that takes an email as JSON over HTTP."""

    def __init__(
        self,
        declaration: Declaration,
        endpoint: Endpoint,
        account: str | None,
        longest_request_seconds: float,
        tls_context: ssl.SSLContext | None,
    ) -> None:
        """``account`` names the account in intents where the host does not tell it apart."""
        self._declaration = declaration
        self._provider = f"{declaration.name.lower()}:{account or endpoint.authority}"
        self._longest_request_seconds = longest_request_seconds
        self._exchanges = Exchanges(endpoint, longest_request_seconds, tls_context)

    @property
    def provider(self) -> str:
        """Name of the provider and account, as it stands in intents."""
        return self._provider

    @property
    def declaration(self) -> Declaration:
        """What can be promised of this account."""
        return self._declaration

    @property
    def capability(self) -> Capability:
        """What an attempt whose answer was lost lets us conclude, as it is declared."""
        return self.declaration.capability

    @property
    def longest_request_seconds(self) -> float:
        """Upper bound of one request, which is enforced here."""
        return self._longest_request_seconds

    async def _posted(
        self,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        concluded: Callable[[Answered], Outcome],
    ) -> Outcome:
        """Send a frozen body by exactly one request and conclude from how it ended."""
        ending = await self._exchanges.post(path, headers, body)
        if isinstance(ending, Answered):
            return concluded(ending)
        return unanswered(self.provider, ending)


def validate_for_json(content: EmailContent, reference: str) -> None:
    """Refuse what a JSON provider would not take or could not carry; raises ``InvalidContent``."""
    # For what it refuses; its bytes are those of another provider.
    freeze(content)
    if not _REFERENCE.fullmatch(reference):
        raise InvalidContent(
            "reference", "it cannot stand in a tag", "Use letters, digits, hyphens, underscores."
        )
    if len(content.recipients()) > MOST_RECIPIENTS:
        raise InvalidContent(
            "to",
            f"it names {len(content.recipients())} recipients, the limit is {MOST_RECIPIENTS}",
            "Name fewer recipients.",
        )
    refuse_smtputf8(content.mailboxes())


def spelled(box: Mailbox) -> str:
    """Spell a mailbox for a JSON field: ``Pat <pat@x.example>``, its name quoted where it must be.

    Punctuation in a name that stands unquoted would be read as part of an address (Postmark,
    support article 1180).
    """
    if not box.name:
        return box.ascii_address
    if _PLAIN_NAME.fullmatch(box.name):
        return f"{box.name} <{box.ascii_address}>"
    escaped = box.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}" <{box.ascii_address}>'


def json_body(answer: Answered) -> Mapping[str, Any] | None:
    """Read an answer's JSON object; ``None`` for everything else, however hostile."""
    if answer.body is None:
        return None
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def is_foreign(answer: Answered) -> bool:
    """Tell whether an answer says of itself that it is no API's: a page of a proxy or a portal."""
    return answer.media_type in ("text/html", "application/xhtml+xml")


def provider_id(value: object) -> str | None:
    """Read a provider's id for a mail."""
    return value if isinstance(value, str) and _PROVIDER_ID.fullmatch(value) else None


def unanswered(provider: str, ending: NeverLeft | Lost) -> Outcome:
    """Conclude from an exchange that brought no answer."""
    if isinstance(ending, NeverLeft):
        return Outcome(
            OutcomeKind.NOT_APPLIED,
            {"provider": provider, "phase": Phase.CONNECT.value, "problem": ending.problem},
            retryable=ending.retryable,
        )
    return Outcome(
        OutcomeKind.UNKNOWN,
        {"provider": provider, "phase": ending.phase.value, "problem": ending.problem},
    )


def answer_evidence(provider: str, answer: Answered, **more: JsonValue) -> JsonObject:
    """Say what an answer's conclusion rests on; ``more`` never holds the provider's free text."""
    return {
        "provider": provider,
        "phase": Phase.ANSWER.value,
        "status": answer.status,
        **{name: value for name, value in more.items() if value is not None},
    }


def accepted(provider: str, answer: Answered, identifier: str | None) -> Outcome:
    """Conclude from a 2xx: the provider has the mail, even if its answer broke off.

    A page instead of an answer proves nothing: somebody on the way gave it.
    """
    if is_foreign(answer):
        problem = "a page was answered, not the provider's JSON"
        return Outcome(OutcomeKind.UNKNOWN, answer_evidence(provider, answer, problem=problem))
    broken = None if identifier else "the answer could not be read, the mail's id is not known"
    return Outcome(
        OutcomeKind.APPLIED, answer_evidence(provider, answer, id=identifier, problem=broken)
    )


def proves_nothing(provider: str, answer: Answered, code: JsonValue) -> Outcome:
    """Conclude from an answer that leaves open whether the mail was accepted."""
    problem = "this answer proves neither that the mail was accepted nor that it was not"
    return Outcome(
        OutcomeKind.UNKNOWN,
        answer_evidence(provider, answer, code=code, problem=problem),
        retry_after=answer.retry_after,
    )
