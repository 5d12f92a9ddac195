"""What providers say later about mails: each event once, matched when its effect is known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.delivery_event import DeliveryKind
from executor.domain.effect import EffectStatus
from executor.domain.ids import EffectId, OperationId, TenantId
from executor.domain.payloads import JsonObject
from executor.store.operations import OperationKey
from executor.store.statements import run

EffectKey = tuple[TenantId, EffectId]

MOST_NOTES = 50


@dataclass(frozen=True, slots=True)
class LateEvidence:
    """One event of a provider; ``effect_id`` may name an effect that is not known."""

    tenant_id: TenantId
    provider: str
    event_id: str
    effect_id: EffectId
    mail_id: str
    kind: DeliveryKind
    evidence: JsonObject
    happened_at: datetime

    @property
    def effect(self) -> EffectKey:
        """The effect that it is about."""
        return self.tenant_id, self.effect_id


@dataclass(frozen=True, slots=True)
class NamedEffect:
    """An effect as it stood without a lock; of what is read here only ``applied`` lasts."""

    operation: OperationKey
    provider: str
    status: EffectStatus


@dataclass(frozen=True, slots=True)
class DeliveryNote:
    """What became of an accepted mail; ``happened_at`` is the provider's time."""

    provider: str
    kind: DeliveryKind
    mail_id: str
    evidence: JsonObject
    happened_at: datetime
    received_at: datetime


async def put(conn: AsyncConnection, said: LateEvidence) -> bool:
    """Store an event; ``False``: it was stored before.

    Waits for a transaction that is storing the same event.
    """
    stored = await run(
        conn,
        "put_late_evidence",
        tenant=said.tenant_id,
        provider=said.provider,
        event_id=said.event_id,
        reference=said.effect_id,
        mail_id=said.mail_id,
        kind=said.kind.value,
        evidence=json.dumps(said.evidence),
        happened_at=said.happened_at,
    )
    return stored.one_or_none() is not None


async def due(conn: AsyncConnection, most: int) -> list[LateEvidence]:
    """Find unmatched events whose time has come; takes no lock."""
    return [
        LateEvidence(
            TenantId(row.tenant_id),
            row.provider,
            row.event_id,
            EffectId(row.reference),
            row.mail_id,
            DeliveryKind(row.kind),
            row.evidence,
            row.happened_at,
        )
        for row in await run(conn, "due_late_evidence", most=most)
    ]


async def lock(conn: AsyncConnection, items: Sequence[LateEvidence]) -> list[LateEvidence]:
    """Lock events, in order, and return those that are still unmatched."""
    rows = await run(
        conn,
        "lock_late_evidence",
        tenants=[item.tenant_id for item in items],
        providers=[item.provider for item in items],
        event_ids=[item.event_id for item in items],
    )
    held = {(row.tenant_id, row.provider, row.event_id) for row in rows}
    return [item for item in items if (item.tenant_id, item.provider, item.event_id) in held]


async def effects_named(
    conn: AsyncConnection, keys: Iterable[EffectKey]
) -> dict[EffectKey, NamedEffect]:
    """Find the effects that events name; unknown ones are absent. Takes no lock."""
    wanted = sorted(set(keys), key=lambda key: (key[0], key[1].int))
    rows = await run(
        conn,
        "effects_by_id",
        tenants=[tenant for tenant, _ in wanted],
        ids=[id_ for _, id_ in wanted],
    )
    return {
        (TenantId(row.tenant_id), EffectId(row.id)): NamedEffect(
            (TenantId(row.tenant_id), OperationId(row.operation_id)),
            row.provider,
            EffectStatus(row.status),
        )
        for row in rows
    }


async def match(conn: AsyncConnection, items: Sequence[LateEvidence]) -> None:
    """Remember that events have been taken in."""
    if not items:
        return
    await run(
        conn,
        "match_late_evidence",
        tenants=[item.tenant_id for item in items],
        providers=[item.provider for item in items],
        event_ids=[item.event_id for item in items],
    )


async def put_off(conn: AsyncConnection, items: Sequence[LateEvidence]) -> None:
    """Look at events again later, less and less often."""
    if not items:
        return
    await run(
        conn,
        "put_off_late_evidence",
        tenants=[item.tenant_id for item in items],
        providers=[item.provider for item in items],
        event_ids=[item.event_id for item in items],
    )


async def forget(conn: AsyncConnection, seconds: float) -> None:
    """Forget events that nothing was known for in the last ``seconds``."""
    await run(conn, "forget_late_evidence", seconds=seconds)


async def read_delivery_notes(
    conn: AsyncConnection, tenant: TenantId, operation_id: OperationId
) -> list[DeliveryNote]:
    """Read what became of an operation's mails, oldest first; of many the latest ``MOST_NOTES``."""
    rows = await run(conn, "delivery_notes", tenant=tenant, operation=operation_id, most=MOST_NOTES)
    latest_first = [
        DeliveryNote(
            row.provider,
            DeliveryKind(row.kind),
            row.mail_id,
            row.evidence,
            row.happened_at,
            row.received_at,
        )
        for row in rows
    ]
    return latest_first[::-1]
