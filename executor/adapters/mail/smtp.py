"""Mail by SMTP: handed over at most once, and an answer that was lost is said to be unknown.

What an ending proves follows RFC 5321 (4.2.5, 4.5.3.2.6): until the first byte of content nothing
can have been accepted; a refusal after the final dot means the server will not deliver; an
acceptance after it passes responsibility; a loss in between proves nothing. The conversation is led
command by command, since a whole-message call hides the phase in which a connection was lost and
mails the accepted recipients when another one was refused.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from datetime import UTC, datetime

import aiosmtplib

from executor.adapters.mail.smtp_conversation import Conversation, Phase, Refused, ServerLimits
from executor.adapters.mail.smtp_url import SmtpSettings
from executor.domain.address import refuse_smtputf8
from executor.domain.declaration import Declaration
from executor.domain.effect import Capability, EffectKind, Outcome, OutcomeKind
from executor.domain.email import EmailContent
from executor.domain.errors import InvalidContent
from executor.domain.frozen_email import freeze, with_date
from executor.domain.payloads import JsonObject
from executor.engine.ports import OutgoingMail

LONGEST_REQUEST_SECONDS = 300.0
"""Default bound of one ``send``. RFC 5321, 4.5.3.2.6, allows servers ten minutes after the dot, yet
a person who is waiting for the outcome is better served by an honest unknown after five."""

_ENVELOPE_ADDRESS = re.compile(r"[^\s<>\x00-\x1f\x7f]+@[^\s<>\x00-\x1f\x7f]+")
_LONGEST_LINE = 998


DECLARED = Declaration(
    "SMTP",
    EffectKind.EMAIL_SEND,
    Capability.OPAQUE,
    "whoever can read the mail server's log or ask the customer",
)


class SmtpMail:
    """One account on one mail server; implements ``MailPort``."""

    def __init__(
        self,
        settings: SmtpSettings,
        *,
        longest_request_seconds: float = LONGEST_REQUEST_SECONDS,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._longest_request_seconds = longest_request_seconds
        self._tls_context = tls_context
        self._limits: ServerLimits | None = None

    @property
    def provider(self) -> str:
        """Name of the provider and account, as it stands in intents."""
        return f"smtp:{self._settings.host}:{self._settings.port}"

    @property
    def declaration(self) -> Declaration:
        """What can be promised of this account: SMTP knows neither keys nor lookups."""
        return DECLARED

    @property
    def capability(self) -> Capability:
        """What an attempt whose answer was lost lets us conclude, as it is declared."""
        return self.declaration.capability

    @property
    def longest_request_seconds(self) -> float:
        """Upper bound of one ``send``, which it enforces itself."""
        return self._longest_request_seconds

    def freeze(self, content: EmailContent, reference: str) -> bytes:
        """Make the MIME message without its ``Date``; nothing can be searched by a reference.

        Refuses also what the server, as far as it was spoken to already, says it cannot take.
        """
        frozen = freeze(content)
        if self._limits is not None:
            if not self._limits.smtputf8:
                refuse_smtputf8(content.mailboxes())
            dated = with_date(frozen, datetime.now(UTC))
            objection = self._limits.objection(content.recipients(), dated)
            if objection is not None:
                raise InvalidContent("message", objection, "Shorten the message.")
        return frozen

    async def send(self, mail: OutgoingMail) -> Outcome:
        """Hand the mail over once, to all of its recipients or to none.

        Cancelled, it drops the connection at once, so that no further byte leaves; what had left
        by then is for the caller to treat as unknown.
        """
        mime = with_date(mail.payload, mail.date)
        unfit = _unfit(mail, mime)
        if unfit:
            return Outcome(
                OutcomeKind.NOT_APPLIED,
                {"provider": self.provider, "phase": Phase.CONNECT.value, "problem": unfit},
            )
        conversation = Conversation(self._settings, self._tls_context)
        try:
            async with asyncio.timeout(self._longest_request_seconds):
                await conversation.greet()
                self._limits = conversation.limits()
                await conversation.address(mail, mime)
                code, reply = await conversation.hand_over(mime)
        except Refused as refusal:
            conversation.take_leave()
            return Outcome(
                OutcomeKind.NOT_APPLIED,
                {"provider": self.provider, **refusal.evidence()},
                retryable=refusal.retryable,
            )
        # Whatever else ends a conversation proves only what its phase proves, so the widest net is
        # the honest one; cancellation is no Exception and passes.
        except Exception as error:
            return self._lost(conversation, error)
        else:
            conversation.take_leave()
            return self._answered(code, conversation.one_line(reply))
        finally:
            conversation.drop()

    def _answered(self, code: int, reply: str) -> Outcome:
        """Conclude from the reply to the final dot."""
        evidence: JsonObject = {
            "provider": self.provider,
            "phase": Phase.FINAL_REPLY.value,
            "code": code,
            "reply": reply,
        }
        if 200 <= code < 300:
            return Outcome(OutcomeKind.APPLIED, evidence)
        if 400 <= code < 600:
            return Outcome(OutcomeKind.NOT_APPLIED, evidence, retryable=code < 500)
        return Outcome(OutcomeKind.UNKNOWN, {**evidence, "problem": "not a reply to a message"})

    def _lost(self, conversation: Conversation, error: Exception) -> Outcome:
        """Conclude from a conversation that ended without an answer."""
        evidence: JsonObject = {
            "provider": self.provider,
            "phase": conversation.phase.value,
            "problem": _problem(error, self._longest_request_seconds),
        }
        if conversation.phase in (Phase.CONTENT, Phase.FINAL_REPLY):
            return Outcome(OutcomeKind.UNKNOWN, evidence)
        return Outcome(OutcomeKind.NOT_APPLIED, evidence, retryable=_may_pass(error))


def _unfit(mail: OutgoingMail, mime: bytes) -> str | None:
    """Name what keeps this mail from leaving exactly as it is stored, if anything does.

    Repairing it here would send other bytes than those that were approved.
    """
    if not mail.envelope_to:
        return "the envelope names no recipient"
    for address in (mail.envelope_from, *mail.envelope_to):
        if not _ENVELOPE_ADDRESS.fullmatch(address):
            return "the envelope holds something that is not an address"
    lines = mime.split(b"\r\n")
    if lines[-1] or any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines):
        return "the message's lines do not all end with CR LF"
    if any(len(line) > _LONGEST_LINE for line in lines):
        return f"the message has a line of more than {_LONGEST_LINE} octets"
    return None


def _problem(error: Exception, bound_seconds: float) -> str:
    """Say in our own words why a conversation ended; a library's words may hold credentials."""
    cause = error.__cause__ if isinstance(error, aiosmtplib.SMTPConnectError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return "the server's certificate was not accepted"
    if isinstance(cause, ssl.SSLError):
        return "the encrypted connection could not be set up"
    if isinstance(cause, TimeoutError):
        return f"no answer within {bound_seconds:g} s"
    if isinstance(cause, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, aiosmtplib.SMTPConnectError):
        return f"the server was not reached ({type(cause).__name__})"
    if isinstance(cause, ConnectionError):
        return "the connection was lost"
    return f"the conversation failed ({type(cause).__name__})"


def _may_pass(error: Exception) -> bool:
    """Tell whether the reason can change by itself."""
    cause = error.__cause__ if isinstance(error, aiosmtplib.SMTPConnectError) else error
    return not isinstance(cause, ssl.SSLCertVerificationError) and (
        isinstance(error, OSError) or isinstance(cause, OSError)
    )
