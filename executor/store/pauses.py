"""Why runs are paused, and what was asked for them: read and written beside the runs themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import OperationId, RunId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.raising import Scope
from executor.store.card_records import AnyRow
from executor.store.operations import OperationKey
from executor.store.statements import run

RunKey = tuple[TenantId, RunId]


@dataclass(frozen=True, slots=True)
class Pause:
    """A run is paused at a limit, for its next call needs more; ``raise_id`` asks for it.

    ``not_raised`` is how the last one that asked for it has ended, where nothing was raised.
    """

    key: RunKey
    scope: Scope
    day: date | None
    needed_microusd: int
    renews_at: datetime | None
    raise_id: OperationId | None
    not_raised: OperationStatus | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A paused run for which an operation asks for more."""

    key: RunKey
    number: int
    raise_id: OperationId
    scope: Scope


async def record(conn: AsyncConnection, pause: Pause, now: datetime, look_at: datetime) -> None:
    """Say why a locked run is paused."""
    await run(
        conn,
        "record_pause",
        tenant=pause.key[0],
        run=pause.key[1],
        scope=pause.scope.value,
        day=pause.day,
        needed=pause.needed_microusd,
        renews_at=pause.renews_at,
        raise_id=pause.raise_id,
        not_raised=None if pause.not_raised is None else pause.not_raised.value,
        now=now,
        look_at=look_at,
    )


async def waiting_for(conn: AsyncConnection, raises: Iterable[OperationKey]) -> list[Waiting]:
    """Find the paused runs for which these operations ask; takes no lock."""
    wanted = list(raises)
    rows = await run(
        conn,
        "pauses_for_raises",
        tenants=[tenant for tenant, _ in wanted],
        raises=[id_ for _, id_ in wanted],
    )
    return [
        Waiting(
            (TenantId(r.tenant_id), RunId(r.run_id)),
            r.number,
            OperationId(r.raise_id),
            Scope(r.scope),
        )
        for r in rows
    ]


async def end_raises(conn: AsyncConnection, ended: Mapping[RunKey, OperationStatus | None]) -> None:
    """What asked for more for locked runs has ended; ``None`` where it was raised."""
    if ended:
        await run(
            conn,
            "end_raises",
            tenants=[tenant for tenant, _ in ended],
            runs=[id_ for _, id_ in ended],
            not_raised=[None if status is None else status.value for status in ended.values()],
        )


async def with_room(
    conn: AsyncConnection,
    tenant: TenantId,
    today: date,
    day_limit: int,
    most: int,
    runs: Sequence[RunId] | None,
) -> list[RunId]:
    """Find paused runs whose next call fits now, of some runs or of all; takes no lock."""
    rows = await run(
        conn,
        "pauses_with_room",
        tenant=tenant,
        today=today,
        day_limit=day_limit,
        runs=None if runs is None else list(runs),
        most=most,
    )
    return [RunId(row.run_id) for row in rows]


async def take_due(conn: AsyncConnection, most: int, look_at: datetime) -> list[RunKey]:
    """Take pauses that nobody has looked at for a while; they are looked at again then."""
    rows = await run(conn, "look_at_pauses", most=most, look_at=look_at)
    return [(TenantId(row.tenant_id), RunId(row.run_id)) for row in rows]


async def unwanted_raises(conn: AsyncConnection, most: int) -> list[tuple[OperationKey, RunId]]:
    """Find raises that wait, and for which no run is paused; each with its own run."""
    rows = await run(conn, "raises_that_nobody_waits_for", most=most)
    return [((TenantId(row.tenant_id), OperationId(row.id)), RunId(row.run_id)) for row in rows]


async def unopened_raises(
    conn: AsyncConnection, tenant: TenantId, prefixes: Sequence[str]
) -> dict[OperationKey, RunKey]:
    """Find raises that nobody has opened by how their keys begin, each with its own run."""
    rows = await run(conn, "unopened_raises", tenant=tenant, prefixes=list(prefixes))
    return {(tenant, OperationId(row.id)): (tenant, RunId(row.run_id)) for row in rows}


async def rejected(conn: AsyncConnection, tenant: TenantId, key: str) -> bool:
    """Say whether people have said no to this very raise."""
    found = await run(conn, "rejected_of_key", tenant=tenant, key=key)
    return found.one_or_none() is not None


async def of_run(conn: AsyncConnection, key: RunKey) -> AnyRow | None:
    """Read why one run is paused; ``None``: it is not."""
    return (await run(conn, "pause_of_run", tenant=key[0], run=key[1])).one_or_none()


async def last_words(conn: AsyncConnection, key: RunKey) -> str:
    """Read what the model of a run said last; empty where it said nothing."""
    found = (await run(conn, "last_words_of_run", tenant=key[0], run=key[1])).one_or_none()
    return "" if found is None else str(found.text)
