"""The evidence: what was called, delivered, acknowledged and shown, in order, append-only.

Tokens, signing secrets and response URLs never enter it; who appends redacts first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from bot.sandbox.model import Json

Kind = Literal["call", "delivery", "ack", "card", "response_url", "fault"]


@dataclass(frozen=True)
class Entry:
    """One thing that happened. `at` is Unix seconds on the workspace's clock."""

    number: int
    at: float
    kind: Kind
    name: str
    data: Json


class Record:
    """Keep entries in order. Past `limit` entries the oldest go and `dropped` counts them."""

    def __init__(self, limit: int = 100_000) -> None:
        self._entries: deque[Entry] = deque(maxlen=limit)
        self._number = 0

    def add(self, kind: Kind, name: str, at: float, data: Json) -> Entry:
        self._number += 1
        entry = Entry(self._number, at, kind, name, data)
        self._entries.append(entry)
        return entry

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def dropped(self) -> int:
        return self._number - len(self._entries)

    def of(self, kind: Kind, name: str | None = None) -> list[Entry]:
        """Return the entries of one kind, and of one name if given."""
        return [e for e in self if e.kind == kind and name in (None, e.name)]

    def calls(self, method: str | None = None) -> list[Entry]:
        """Return Web API calls; `data` is {"args", "status", "response", "fault"?}."""
        return self.of("call", method)

    def deliveries(self, kind: str | None = None) -> list[Entry]:
        """Return requests sent to the bot; `data` is {"user", "payload", "delivery"}."""
        return self.of("delivery", kind)

    def acks(self, kind: str | None = None) -> list[Entry]:
        """Return the bot's answers; `data` is {"status", "seconds", "sees", "delivery"}."""
        return self.of("ack", kind)

    def cards(self, channel: str | None = None, ts: str | None = None) -> list[Entry]:
        """Return rendered messages; `data` is {"channel", "ts", "revision", "shown", "blocks"}."""
        return [
            e
            for e in self.of("card")
            if channel in (None, e.data["channel"]) and ts in (None, e.data["ts"])
        ]

    def to_json(self) -> list[Json]:
        return [asdict(entry) for entry in self]
