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
class OperationRow:
    """An operation as it is read under its lock; ``intent`` is its canonical JSON text."""

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
    desk: str
    ticket_id: str
    ticket_version: int
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

    @property
    def key(self) -> OperationKey:
        """The operation's place in every index."""
        return self.tenant_id, self.id

    @property
    def resource(self) -> Resource:
        """What rights are asked for about it."""
        return Resource(self.kind, self.desk, self.ticket_id)


@dataclass(frozen=True, slots=True)
class NewOperation:
    """An operation to be minted."""

    tenant_id: TenantId
    id: OperationId
    run_id: RunId
    intent: Intent
    content_revision: int
    requester: PrincipalId
    policy_version: str
    desk: str
    ticket_id: str
    ticket_version: int
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
        desks=[o.desk for o in minted],
        ticket_ids=[o.ticket_id for o in minted],
        ticket_versions=[o.ticket_version for o in minted],
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
    locked = [_row(row) for row in rows]
    return {row.key: row for row in locked}


@dataclass(frozen=True, slots=True)
class OperationNames:
    """What an operation names and never changes, so that it can be read before any lock."""

    tenant_id: TenantId
    run_id: RunId
    desk: str
    ticket_id: str
    intent_key: str
    compensates: OperationId | None


async def peek(conn: AsyncConnection, keys: Iterable[OperationKey]) -> list[OperationNames]:
    """Read the runs and tickets that operations name; takes no lock."""
    wanted = list(keys)
    rows = await run(
        conn,
        "peek_operations",
        tenants=[tenant for tenant, _ in wanted],
        ids=[id_ for _, id_ in wanted],
    )
    return [
        OperationNames(
            TenantId(row.tenant_id),
            RunId(row.run_id),
            row.desk,
            row.ticket_id,
            row.intent_key,
            None if row.compensates is None else OperationId(row.compensates),
        )
        for row in rows
    ]


async def claim_due(conn: AsyncConnection, most: int) -> list[OperationRow]:
    """Lock at most ``most`` operations whose time has come, skipping what others hold."""
    return [_row(row) for row in await run(conn, "due_operations", most=most)]


async def of_keys(
    conn: AsyncConnection, keys: Iterable[tuple[TenantId, str]]
) -> list[tuple[TenantId, OperationId, str, OperationStatus]]:
    """Find what is live under these intent keys, what succeeded, and what failed; takes no lock.

    What failed may still turn out to have succeeded: lock it before relying on its status.
    """
    wanted = list(keys)
    rows = await run(
        conn,
        "operations_of_keys",
        tenants=[tenant for tenant, _ in wanted],
        intent_keys=[key for _, key in wanted],
    )
    return [
        (
            TenantId(row.tenant_id),
            OperationId(row.id),
            row.intent_key,
            OperationStatus(row.status),
        )
        for row in rows
    ]


async def of_runs(
    conn: AsyncConnection, runs: Iterable[tuple[TenantId, RunId]]
) -> list[tuple[TenantId, OperationId, RunId, int, OperationStatus]]:
    """Find the operations that belong to these runs; takes no lock."""
    wanted = list(runs)
    rows = await run(
        conn,
        "operations_of_runs",
        tenants=[tenant for tenant, _ in wanted],
        runs=[id_ for _, id_ in wanted],
    )
    return [
        (
            TenantId(row.tenant_id),
            OperationId(row.id),
            RunId(row.run_id),
            row.number,
            OperationStatus(row.status),
        )
        for row in rows
    ]


async def lease(
    conn: AsyncConnection, rows: Sequence[OperationRow], *, owner: str, until: datetime
) -> dict[OperationKey, int]:
    """Give locked operations to ``owner`` and return their new epochs."""
    taken = await run(
        conn,
        "lease_operations",
        tenants=[row.tenant_id for row in rows],
        ids=[row.id for row in rows],
        owner=owner,
        until=until,
    )
    epochs = {(TenantId(t.tenant_id), OperationId(t.id)): int(t.lease_epoch) for t in taken}
    if len(epochs) != len(rows):
        raise LostRace("lease_operations", len(rows) - len(epochs))
    return epochs


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


async def renew(
    conn: AsyncConnection, key: OperationKey, *, owner: str, epoch: int, until: datetime
) -> bool:
    """Prolong a lease; ``False`` means that it is no longer ours."""
    renewed = await run(
        conn,
        "renew_operation_lease",
        tenant=key[0],
        id=key[1],
        owner=owner,
        epoch=epoch,
        until=until,
    )
    return renewed.one_or_none() is not None


async def hand_back(
    conn: AsyncConnection, key: OperationKey, *, owner: str, epoch: int, due_at: datetime
) -> bool:
    """Give up a lease so that it is due at ``due_at``; ``False``: it was not ours any more."""
    back = await run(
        conn,
        "hand_back_operation",
        tenant=key[0],
        id=key[1],
        owner=owner,
        epoch=epoch,
        due_at=due_at,
    )
    return back.one_or_none() is not None


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


def _row(row: Row[*tuple[Any, ...]]) -> OperationRow:
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
        row.desk,
        row.ticket_id,
        row.ticket_version,
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
    )


def _spelled(stamp: Stamp | None) -> str | None:
    return None if stamp is None else json.dumps(stamp.as_json())
