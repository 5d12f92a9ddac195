"""What a run says of itself while it works: asked for after each step, read without content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import OperationId, RunId, TenantId
from executor.store.card_records import AnyRow
from executor.store.statements import run

RunKey = tuple[TenantId, RunId]


async def want(conn: AsyncConnection, keys: Iterable[RunKey]) -> None:
    """Ask for the progress of runs to be drawn again; locks their cards, before journal heads.

    Runs without a driver, and those of agents, have none.
    """
    wanted = sorted(set(keys), key=lambda key: (key[0], key[1].int))
    if wanted:
        await run(
            conn,
            "want_progress",
            tenants=[tenant for tenant, _ in wanted],
            runs=[id_ for _, id_ in wanted],
        )


async def runs_that_tell_of(
    conn: AsyncConnection, tenant: TenantId, operation: OperationId
) -> list[RunId]:
    """Find the driven runs whose own word tells of an operation; takes no lock."""
    rows = await run(conn, "runs_that_tell_of", tenant=tenant, operation=operation)
    return [RunId(row.run_id) for row in rows]


async def calls_of(conn: AsyncConnection, key: RunKey) -> Sequence[AnyRow]:
    """Read which tools a run has called and what each call has come to."""
    return (await run(conn, "calls_of_run", tenant=key[0], run=key[1])).all()


async def questions_to(conn: AsyncConnection, key: RunKey) -> Sequence[AnyRow]:
    """Read what people have asked a run about, and whether it was answered."""
    return (await run(conn, "questions_put_to_run", tenant=key[0], run=key[1])).all()


async def operations_asked_for(conn: AsyncConnection, key: RunKey) -> Sequence[AnyRow]:
    """Read the operations that a run has asked for, with how far their effects are."""
    return (await run(conn, "operations_asked_for", tenant=key[0], run=key[1])).all()


async def money_of(conn: AsyncConnection, key: RunKey) -> AnyRow | None:
    """Read what a run has spent, and when its calls of a model came to nothing."""
    return (await run(conn, "money_of_run", tenant=key[0], run=key[1])).one_or_none()
