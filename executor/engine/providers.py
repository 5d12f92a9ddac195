"""Everything outside that a worker changes something at: the mail provider and the ticket desk."""

from __future__ import annotations

from dataclasses import dataclass

from executor.domain.declaration import Declaration
from executor.domain.effect import AT_A_DESK, EffectKind
from executor.domain.ticket import BUILTIN_DESK
from executor.engine.desk_port import TicketDesk
from executor.engine.ports import MailPort


@dataclass(frozen=True, slots=True)
class Account:
    """Who takes one kind of effects: what is recorded with each attempt, and its bound."""

    name: str
    declaration: Declaration
    longest_request_seconds: float


@dataclass(frozen=True, slots=True)
class Providers:
    """The outside of one worker; without a ``desk`` the tickets are those of the built-in one."""

    mail: MailPort
    desk: TicketDesk | None = None

    @property
    def desk_name(self) -> str:
        """Name of the desk that tickets are read from, as it stands in intents."""
        return BUILTIN_DESK if self.desk is None else self.desk.name

    def account_for(self, kind: EffectKind) -> Account | None:
        """Return who takes effects of this kind; ``None``: nobody outside does."""
        if kind not in AT_A_DESK:
            mail = self.mail
            return Account(mail.provider, mail.declaration, mail.longest_request_seconds)
        desk = self.desk
        if desk is None:
            return None
        return Account(desk.name, desk.declaration, desk.longest_request_seconds)
