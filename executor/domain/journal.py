"""The journal's chain: each entry's hash covers its content and the hash before it, per subject.

A change to any stored entry, a removed one and a reordered one are found by computing the chain
again, with nothing but the entries. What the chain alone cannot show is that the last entries were
cut off; sealed heads are for that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID, uuid5

from executor.domain.ids import RunId, TenantId
from executor.domain.payloads import JsonObject, JsonValue, canonical, storable
from executor.domain.transition import BORN, Machine, StatusT, Transition

FIRST_HASH = bytes(32)
_TENANTS = UUID("6f0c5f0e-9a53-4d5c-8f37-0c5d6a1e7b42")


def tenant_subject(tenant: TenantId) -> RunId:
    """Name the subject under which what belongs to no run is chained: a tenant's grants."""
    return RunId(uuid5(_TENANTS, tenant))


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One move of one machine, or a note where ``machine`` is ``None``."""

    tenant_id: TenantId
    subject: RunId
    position: int
    machine: Machine | None
    entity_id: UUID
    seq: int | None
    source: str | None
    target: str | None
    event: str
    actor: str
    detail: JsonObject
    recorded_at: datetime
    previous_hash: bytes

    def content(self) -> dict[str, JsonValue]:
        """Spell what the hash covers, beside the previous hash."""
        return {
            "tenant_id": self.tenant_id,
            "subject": str(self.subject),
            "position": self.position,
            "machine": None if self.machine is None else self.machine.value,
            "entity_id": str(self.entity_id),
            "seq": self.seq,
            "source": self.source,
            "target": self.target,
            "event": self.event,
            "actor": self.actor,
            "detail": self.detail,
            "recorded_at": self.recorded_at.astimezone(UTC).isoformat(timespec="microseconds"),
        }

    @property
    def hash(self) -> bytes:
        """SHA-256 over the previous hash and the canonical content."""
        return hashlib.sha256(self.previous_hash + canonical(self.content())).digest()


@dataclass(slots=True)
class Head:
    """Where a subject's chain ends."""

    position: int = 0
    hash: bytes = FIRST_HASH


@dataclass(slots=True)
class Chain:
    """Makes the entries of one transaction, in order, on heads that are locked in it."""

    now: datetime
    heads: dict[tuple[TenantId, RunId], Head]
    grown: dict[tuple[TenantId, RunId], int] = field(default_factory=dict)

    def note(
        self,
        tenant: TenantId,
        subject: RunId,
        entity: UUID,
        event: str,
        actor: str,
        detail: JsonObject,
    ) -> JournalEntry:
        """Chain something that was said or seen and moved nothing."""
        return self._append(tenant, subject, None, entity, None, None, None, event, actor, detail)

    def birth(
        self,
        machine: Machine,
        tenant: TenantId,
        subject: RunId,
        entity: UUID,
        status: StrEnum,
        actor: str,
        detail: JsonObject,
    ) -> JournalEntry:
        """Chain the first entry of a record."""
        return self._append(
            tenant, subject, machine, entity, 1, BORN, status.value, "born", actor, detail
        )

    def move(
        self,
        machine: Machine,
        tenant: TenantId,
        subject: RunId,
        entity: UUID,
        seq: int,
        transition: Transition[StatusT],
        actor: str,
    ) -> JournalEntry:
        """Chain a transition; ``seq`` is the record's number before it."""
        detail: dict[str, JsonValue] = dict(transition.detail)
        if transition.reason is not None:
            detail["reason"] = transition.reason.value
        return self._append(
            tenant,
            subject,
            machine,
            entity,
            seq + 1,
            str(transition.source),
            str(transition.target),
            transition.event,
            actor,
            detail,
        )

    def _append(
        self,
        tenant: TenantId,
        subject: RunId,
        machine: Machine | None,
        entity: UUID,
        seq: int | None,
        source: str | None,
        target: str | None,
        event: str,
        actor: str,
        detail: JsonObject,
    ) -> JournalEntry:
        head = self.heads[tenant, subject]
        stored = storable(detail)
        assert isinstance(stored, Mapping)
        entry = JournalEntry(
            tenant,
            subject,
            head.position + 1,
            machine,
            entity,
            seq,
            source,
            target,
            event,
            actor,
            stored,
            self.now,
            head.hash,
        )
        self.grown.setdefault((tenant, subject), head.position)
        head.position, head.hash = entry.position, entry.hash
        return entry


@dataclass(frozen=True, slots=True)
class Break:
    """Where a chain does not hold, and why."""

    position: int
    problem: str


def verify(entries: Iterable[tuple[JournalEntry, bytes]], head: Head | None = None) -> Break | None:
    """Compute one subject's chain again; ``entries`` are pairs of entry and stored hash, in order.

    Returns the first break, or ``None``. With ``head``, the chain must end exactly there.
    """
    position, previous = 0, FIRST_HASH
    for entry, stored in entries:
        if entry.position != position + 1:
            return Break(entry.position, f"entry {position + 1} is missing")
        if entry.previous_hash != previous:
            return Break(entry.position, "it does not follow the entry before it")
        if entry.hash != stored:
            return Break(entry.position, "its content was changed")
        position, previous = entry.position, stored
    if head is not None and (head.position, head.hash) != (position, previous):
        return Break(position, f"the chain should end at {head.position}")
    return None
