"""The mails that a provider double took responsibility for, whether or not its caller knows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from bot.sandbox.model import Json

MOST_MAILS = 10_000
"""Mails that a double holds; it takes no more."""


@dataclass(frozen=True, slots=True)
class AcceptedMail:
    """One accepted request: `raw` is its body octet for octet, `fields` the same as JSON."""

    number: int
    provider_id: str
    raw: bytes
    fields: Json
    recipients: tuple[str, ...]
    accepted_at: float
    key: str | None = None
    copies: int = 1


class AcceptedMails:
    """Counts requests by key, and deliveries, repeats included, by recipient."""

    def __init__(self) -> None:
        self.mails: list[AcceptedMail] = []
        self.by_key: Counter[str] = Counter()
        self.by_recipient: Counter[str] = Counter()
        self._changed = asyncio.Condition()
        self._notices: set[asyncio.Task[None]] = set()

    @property
    def accepted(self) -> int:
        """How many requests were accepted."""
        return len(self.mails)

    def keep(self, mail: AcceptedMail) -> None:
        """Take responsibility for a mail."""
        if len(self.mails) >= MOST_MAILS:
            raise RuntimeError(f"a double holds no more than {MOST_MAILS} mails")
        self.mails.append(mail)
        if mail.key is not None:
            self.by_key[mail.key] += 1
        for recipient in mail.recipients:
            self.by_recipient[recipient] += mail.copies
        notice = asyncio.get_running_loop().create_task(self._notify())
        self._notices.add(notice)
        notice.add_done_callback(self._notices.discard)

    async def wait_for(
        self, predicate: Callable[[AcceptedMails], bool], timeout: float = 10.0
    ) -> None:
        """Wait until what was accepted satisfies `predicate`; raises `TimeoutError`."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: predicate(self))

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
