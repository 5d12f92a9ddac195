"""The mails that a provider double took responsibility for, whether or not its caller knows."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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
    """Counts requests by key, and deliveries, repeats included, by recipient.

    With a ``spool`` file they survive a restart; without one they live as long as this object.
    """

    def __init__(self, spool: Path | None = None) -> None:
        self.mails: list[AcceptedMail] = []
        self.by_key: Counter[str] = Counter()
        self.by_recipient: Counter[str] = Counter()
        self._spool = spool
        self._changed = asyncio.Condition()
        self._notices: set[asyncio.Task[None]] = set()
        if spool is not None and spool.exists():
            for line in spool.read_text(encoding="utf-8").splitlines():
                self._count(_read(line))

    @property
    def accepted(self) -> int:
        """How many requests were accepted."""
        return len(self.mails)

    def keep(self, mail: AcceptedMail) -> None:
        """Take responsibility for a mail."""
        if len(self.mails) >= MOST_MAILS:
            raise RuntimeError(f"a double holds no more than {MOST_MAILS} mails")
        if self._spool is not None:
            with self._spool.open("a", encoding="utf-8") as spool:
                spool.write(_written(mail) + "\n")
        self._count(mail)
        notice = asyncio.get_running_loop().create_task(self._notify())
        self._notices.add(notice)
        notice.add_done_callback(self._notices.discard)

    async def wait_for(
        self, predicate: Callable[[AcceptedMails], bool], timeout: float = 10.0
    ) -> None:
        """Wait until what was accepted satisfies `predicate`; raises `TimeoutError`."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: predicate(self))

    def _count(self, mail: AcceptedMail) -> None:
        self.mails.append(mail)
        if mail.key is not None:
            self.by_key[mail.key] += 1
        for recipient in mail.recipients:
            self.by_recipient[recipient] += mail.copies

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _written(mail: AcceptedMail) -> str:
    return json.dumps(
        {
            "number": mail.number,
            "provider_id": mail.provider_id,
            # Octet for octet: Latin-1 has a character for each.
            "raw": mail.raw.decode("latin-1"),
            "recipients": mail.recipients,
            "accepted_at": mail.accepted_at,
            "key": mail.key,
            "copies": mail.copies,
        }
    )


def _read(line: str) -> AcceptedMail:
    kept = json.loads(line)
    raw = kept.pop("raw").encode("latin-1")
    recipients = tuple(kept.pop("recipients"))
    return AcceptedMail(raw=raw, fields=json.loads(raw), recipients=recipients, **kept)
