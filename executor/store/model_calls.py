"""Calls of a model: recorded with the money that is held for them, ended with what it came to.

A call is locked by its reservation. What it cost stands there alone: it may be told much later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.budget import ReservationStatus
from executor.domain.ids import ReservationId, RunId, TenantId
from executor.store.budgets import ReservationKey, RunKey
from executor.store.statements import run


class CallStatus(StrEnum):
    """Where a call stands; ``abandoned``: we went away from it; ``lost``: nobody told its end."""

    ASKED = "asked"
    REPLIED = "replied"
    FAILED = "failed"
    ABANDONED = "abandoned"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a provider said that a call took; ``read`` are all, those of its cache included."""

    read: int
    written: int
    cache_read: int
    cache_written: int


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call that is about to be made; ``request_digest`` is a SHA-256."""

    tenant_id: TenantId
    reservation_id: ReservationId
    run_id: RunId
    model: str
    request_digest: bytes
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call ended."""

    status: CallStatus
    tokens: Tokens | None = None
    response_id: str | None = None
    problem: str | None = None


LOST = CallEnd(CallStatus.LOST)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whether the run still waits for the answer, and whether it has run out of time."""

    ours: bool
    time_is_over: bool


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A recorded call with its charge; ``actual_microusd`` is known once that is settled."""

    number: int
    model: str
    request_digest: bytes
    max_output_tokens: int
    status: CallStatus
    tokens: Tokens | None
    response_id: str | None
    problem: str | None
    asked_at: datetime
    ended_at: datetime | None
    reservation_id: ReservationId
    charge: ReservationStatus
    amount_microusd: int
    actual_microusd: int | None


async def insert(conn: AsyncConnection, calls: Sequence[NewCall], now: datetime) -> None:
    """Record calls in the commit that holds their money; their runs are locked."""
    if not calls:
        return
    await run(
        conn,
        "insert_model_calls",
        tenants=[c.tenant_id for c in calls],
        reservations=[c.reservation_id for c in calls],
        runs=[c.run_id for c in calls],
        models=[c.model for c in calls],
        digests=[c.request_digest for c in calls],
        outputs=[c.max_output_tokens for c in calls],
        now=now,
    )


async def end(
    conn: AsyncConnection, ends: Sequence[tuple[ReservationKey, CallEnd]], now: datetime
) -> None:
    """Record how calls ended, once; reservations that are no call's are passed over."""
    if not ends:
        return
    tokens = [e.tokens for _, e in ends]
    await run(
        conn,
        "end_model_calls",
        tenants=[tenant for (tenant, _), _ in ends],
        reservations=[id_ for (_, id_), _ in ends],
        statuses=[e.status.value for _, e in ends],
        inputs=[t and t.read for t in tokens],
        outputs=[t and t.written for t in tokens],
        cache_reads=[t and t.cache_read for t in tokens],
        cache_writes=[t and t.cache_written for t in tokens],
        responses=[e.response_id for _, e in ends],
        problems=[e.problem for _, e in ends],
        now=now,
    )


async def failed_in_a_row(conn: AsyncConnection, key: RunKey) -> int:
    """Count the calls of a run that failed since it last had a reply."""
    return int((await run(conn, "failed_calls_in_a_row", tenant=key[0], run=key[1])).scalar_one())


async def wanted(conn: AsyncConnection, key: RunKey, epoch: int) -> Wanted:
    """Look at the run of a call that is under way; takes no lock."""
    row = (await run(conn, "call_is_wanted", tenant=key[0], run=key[1], epoch=epoch)).one()
    return Wanted(row.ours, row.time_is_over)


async def of_run(conn: AsyncConnection, key: RunKey) -> list[ModelCall]:
    """Read the calls of a run in order; takes no lock."""
    rows = await run(conn, "read_model_calls", tenant=key[0], run=key[1])
    return [
        ModelCall(
            r.number,
            r.model,
            bytes(r.request_digest),
            r.max_output_tokens,
            CallStatus(r.status),
            None
            if r.input_tokens is None
            else Tokens(r.input_tokens, r.output_tokens, r.cache_read_tokens, r.cache_write_tokens),
            r.response_id,
            r.problem,
            r.asked_at,
            r.ended_at,
            ReservationId(r.reservation_id),
            ReservationStatus(r.charge),
            r.amount_microusd,
            r.actual_microusd,
        )
        for r in rows
    ]
