"""Operations and the proposals that asked for them; the pair of ``executor.domain.operation``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import LostRace
from executor.domain.grant import Resource
from executor.domain.ids import OperationId, PrincipalId, RunId, TenantId
from executor.domain.intent import Intent
from executor.domain.journal import JournalEntry
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.risk import RiskFacts
from executor.domain.stamp import Stamp, stamp_from
from executor.domain.transition import Reason, Transition
from executor.store.journal import as_rows
from executor.store.statements import run

OperationKey = tuple[TenantId, OperationId]


@dataclass(frozen=True, slots=True)
class TicketName:
    """The ticket that an operation is about, and the version at which it was proposed."""

    desk: str
    id: str
    version: int


@dataclass(frozen=True, slots=True)
class OperationRow:
    """An operation as it is read under its lock; ``intent`` is its canonical JSON text.

    ``place`` and ``thing`` are what rights are asked for: see ``Resource``.
    """

    tenant_id: TenantId
    id: OperationId
    number: int
    seq: int
    status: OperationStatus
    run_id: RunId
    intent_key: str
    intent: str
    digest: bytes
    content_digest: bytes
    content_revision: int
    requester: PrincipalId
    policy_version: str
    target: TicketName | None
    closed_version: int | None
    reason: Reason | None
    detail: JsonObject
    lease_owner: str | None
    lease_epoch: int
    opened_at: datetime | None
    ticket_stamp: Stamp | None
    closed_stamp: Stamp | None
    desk_silent_since: datetime | None
    kind: str
    compensates: OperationId | None
    compensate_at: datetime | None
    ended_at: datetime | None
    risks: RiskFacts
    editor: PrincipalId | None
    place: str
    thing: str

    @property
    def key(self) -> OperationKey:
        """The operation's place in every index."""
        return self.tenant_id, self.id

    @property
    def resource(self) -> Resource:
        """What rights are asked for about it."""
        return Resource(self.kind, self.place, self.thing)

    @property
    def is_about_a_ticket(self) -> bool:
        """Whether a ticket is its target; only then it has a desk and a ticket's version."""
        return self.target is not None

    @property
    def desk(self) -> str:
        """The desk of the ticket that it is about."""
        return self._ticket.desk

    @property
    def ticket_id(self) -> str:
        """The ticket that it is about."""
        return self._ticket.id

    @property
    def ticket_version(self) -> int:
        """The version of that ticket at which it was proposed."""
        return self._ticket.version

    @property
    def _ticket(self) -> TicketName:
        assert self.target is not None, f"{self.kind} is about no ticket"
        return self.target


@dataclass(frozen=True, slots=True)
class NewOperation:
    """An operation to be minted; only those about a ticket have a ``target``."""

    tenant_id: TenantId
    id: OperationId
    run_id: RunId
    intent: Intent
    content_revision: int
    requester: PrincipalId
    policy_version: str
    resource: Resource
    target: TicketName | None
    ticket_stamp: Stamp | None
    entry: JournalEntry
    risks: RiskFacts
    compensates: OperationId | None = None
    editor: PrincipalId | None = None
    replaces: OperationId | None = None


@dataclass(frozen=True, slots=True)
class OperationMove:
    """One move of one operation.

    ``keeps_lease`` leaves lease and due time as they are; otherwise the lease ends and ``due_at``
    says when a worker should look again.
    """

    row: OperationRow
    transition: Transition[OperationStatus]
    entry: JournalEntry
    due_at: datetime | None = None
    keeps_lease: bool = False
    opened_at: datetime | None = None
    ended_at: datetime | None = None
    closed_version: int | None = None


async def insert(
    conn: AsyncConnection, minted: Sequence[NewOperation], now: datetime
) -> dict[OperationId, int]:
    """Mint operations and return their numbers.

    A live one under the same key, or another in the place of the same: ``DuplicateKey``.
    """
    rows = await run(
        conn,
        "insert_operations",
        tenants=[o.tenant_id for o in minted],
        ids=[o.id for o in minted],
        runs=[o.run_id for o in minted],
        kinds=[o.intent.kind for o in minted],
        intent_keys=[o.intent.key for o in minted],
        intents=[o.intent.canonical.decode() for o in minted],
        digests=[o.intent.digest for o in minted],
        content_digests=[o.intent.content_digest for o in minted],
        content_revisions=[o.content_revision for o in minted],
        requesters=[o.requester for o in minted],
        policy_versions=[o.policy_version for o in minted],
        places=[o.resource.place for o in minted],
        things=[o.resource.thing for o in minted],
        desks=[o.target and o.target.desk for o in minted],
        ticket_ids=[o.target and o.target.id for o in minted],
        ticket_versions=[o.target and o.target.version for o in minted],
        ticket_stamps=[_spelled(o.ticket_stamp) for o in minted],
        compensates=[o.compensates for o in minted],
        risks=[json.dumps(o.risks.as_json()) for o in minted],
        editors=[o.editor for o in minted],
        replaced=[o.replaces for o in minted],
        now=now,
        entries=as_rows(o.entry for o in minted),
    )
    return {OperationId(row.id): row.number for row in rows}


async def lock(
    conn: AsyncConnection, keys: Iterable[OperationKey]
) -> dict[OperationKey, OperationRow]:
    """Lock operations by id, in order; unknown ones are absent."""
    wanted = sorted(set(keys), key=lambda key: (key[0], key[1].int))
    rows = await run(
        conn,
        "lock_operations",
        tenants=[tenant for tenant, _ in wanted],
        ids=[id_ for _, id_ in wanted],
    )
    locked = [operation_row(row) for row in rows]
    return {row.key: row for row in locked}


async def move(conn: AsyncConnection, moves: Sequence[OperationMove]) -> None:
    """Apply moves of locked operations; any not in its source any more: ``LostRace``."""
    if not moves:
        return
    details = [m.transition.detail for m in moves]
    moved = await run(
        conn,
        "move_operations",
        tenants=[m.row.tenant_id for m in moves],
        ids=[m.row.id for m in moves],
        seqs=[m.row.seq for m in moves],
        sources=[m.transition.source.value for m in moves],
        targets=[m.transition.target.value for m in moves],
        reasons=[m.transition.reason and m.transition.reason.value for m in moves],
        details=[json.dumps(detail) if detail else None for detail in details],
        due_ats=[m.due_at for m in moves],
        keeps=[m.keeps_lease for m in moves],
        opened_ats=[m.opened_at for m in moves],
        ended_ats=[m.ended_at for m in moves],
        closed_versions=[m.closed_version for m in moves],
        entries=as_rows(m.entry for m in moves),
    )
    applied = len(moved.all())
    if applied != len(moves):
        raise LostRace("move_operations", len(moves) - applied)


async def record_closed(
    conn: AsyncConnection, closed: Sequence[tuple[OperationKey, Stamp]]
) -> None:
    """Keep the versions of outside tickets that our own closes have produced."""
    if not closed:
        return
    kept = await run(
        conn,
        "record_closed_stamps",
        tenants=[tenant for (tenant, _), _ in closed],
        ids=[id_ for (_, id_), _ in closed],
        stamps=[_spelled(stamp) for _, stamp in closed],
    )
    if len(kept.all()) != len(closed):
        raise LostRace("record_closed_stamps", len(closed))


@dataclass(frozen=True, slots=True)
class DeskSilence:
    """Since when an outside desk keeps an operation from going on; ``None``: it does not."""

    key: OperationKey
    since: datetime | None
    problem: str | None


async def record_desk_silence(conn: AsyncConnection, silences: Sequence[DeskSilence]) -> None:
    """Say of locked operations whether they wait for their desk to answer."""
    if not silences:
        return
    await run(
        conn,
        "record_desk_silence",
        tenants=[s.key[0] for s in silences],
        ids=[s.key[1] for s in silences],
        sinces=[s.since for s in silences],
        problems=[s.problem for s in silences],
    )


async def waking(conn: AsyncConnection, most: int) -> list[OperationKey]:
    """Find operations that ended and whose runs were not told yet."""
    rows = await run(conn, "operations_to_wake_for", most=most)
    return [(TenantId(row.tenant_id), OperationId(row.id)) for row in rows]


async def clear_waking(conn: AsyncConnection, keys: Iterable[OperationKey]) -> None:
    """Remember that the runs that waited for these operations have been told."""
    wanted = list(keys)
    await run(
        conn,
        "clear_wake_pending",
        tenants=[tenant for tenant, _ in wanted],
        ids=[id_ for _, id_ in wanted],
    )


def operation_row(row: Row[*tuple[Any, ...]]) -> OperationRow:
    """Read an operation from a row that has every column of it."""
    return OperationRow(
        TenantId(row.tenant_id),
        OperationId(row.id),
        row.number,
        row.seq,
        OperationStatus(row.status),
        RunId(row.run_id),
        row.intent_key,
        row.intent,
        bytes(row.digest),
        bytes(row.content_digest),
        row.content_revision,
        PrincipalId(row.requester),
        row.policy_version,
        None if row.ticket_id is None else TicketName(row.desk, row.ticket_id, row.ticket_version),
        row.closed_version,
        None if row.reason is None else Reason(row.reason),
        row.detail,
        row.lease_owner,
        row.lease_epoch,
        row.opened_at,
        stamp_from(row.ticket_stamp),
        stamp_from(row.closed_stamp),
        row.desk_silent_since,
        row.kind,
        None if row.compensates is None else OperationId(row.compensates),
        row.compensate_at,
        row.ended_at,
        RiskFacts.from_json(row.risks),
        None if row.editor is None else PrincipalId(row.editor),
        row.place,
        row.thing,
    )


def _spelled(stamp: Stamp | None) -> str | None:
    return None if stamp is None else json.dumps(stamp.as_json())
