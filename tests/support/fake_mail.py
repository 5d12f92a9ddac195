"""A mail provider in memory, and what it may answer."""

from __future__ import annotations

import asyncio

from executor.domain.declaration import Declaration
from executor.domain.effect import Capability, EffectKind, Outcome, OutcomeKind
from executor.domain.email import EmailContent
from executor.domain.frozen_email import freeze
from executor.engine.ports import OutgoingMail


class FakeMail:
    """A mail provider in memory: scripted outcomes, a gate before each, and a count."""

    provider = "smtp:test"
    declaration = Declaration("Test", EffectKind.EMAIL_SEND, Capability.OPAQUE, "nobody")
    capability = declaration.capability
    longest_request_seconds = 5.0

    def __init__(self) -> None:
        self.sent: list[OutgoingMail] = []
        self.outcomes: list[Outcome] = []
        self.arrived = asyncio.Event()
        self.gate: asyncio.Event | None = None

    @property
    def accepted(self) -> int:
        """How many mails left."""
        return len(self.sent)

    def freeze(self, content: EmailContent, reference: str) -> bytes:
        """Make the MIME message, as SMTP does."""
        return freeze(content)

    async def send(self, mail: OutgoingMail) -> Outcome:
        """Take the mail, wait for the gate, and answer with the next scripted outcome."""
        self.sent.append(mail)
        self.arrived.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.outcomes:
            return self.outcomes.pop(0)
        return applied()


def applied() -> Outcome:
    """An outcome that proves that the mail was taken."""
    return Outcome(OutcomeKind.APPLIED, {"provider": "test", "code": 250})


def not_applied(*, retryable: bool) -> Outcome:
    """An outcome that proves that nothing was sent."""
    return Outcome(OutcomeKind.NOT_APPLIED, {"phase": "rcpt", "code": 450}, retryable=retryable)


def unknown() -> Outcome:
    """An outcome that proves nothing."""
    return Outcome(OutcomeKind.UNKNOWN, {"phase": "content", "problem": "lost"})
