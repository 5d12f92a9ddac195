"""What agents in Slack have asked for, and what it came to at once.

Nobody records a request without the agent's lock, so that counts and keys hold until COMMIT.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.domain.payloads import JsonObject
from executor.store.card_records import AnyRow
from executor.store.statements import run


class Outcome(StrEnum):
    """What a request came to at once."""

    ACCEPTED = "accepted"
    REPEATED = "repeated"
    ANSWERED = "answered"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A request to be recorded; ``kind`` and ``content_digest`` are ``None`` if it is unreadable.

    ``answer`` is what the agent is told where no run is to be told of.
    """

    tenant_id: TenantId
    id: UUID
    agent: PrincipalId
    channel: str
    ts: str
    thread_ts: str
    request_key: str | None
    kind: str | None
    content_digest: bytes | None
    outcome: Outcome
    run_id: RunId | None
    answer: JsonObject


@dataclass(frozen=True, slots=True)
class Earlier:
    """The request that the same key has named before, and the run that it was accepted as."""

    run_id: RunId
    run_number: int
    content_digest: bytes


@dataclass(frozen=True, slots=True)
class Load:
    """How much of an agent is under way, and how often it asked in vain lately."""

    under_way: int
    in_vain: int


async def lock_agent(conn: AsyncConnection, tenant: TenantId, agent: PrincipalId) -> None:
    """Let the requests of one agent wait for each other until COMMIT."""
    await run(conn, "lock_agent", tenant=tenant, agent=agent)


async def is_known(conn: AsyncConnection, tenant: TenantId, channel: str, ts: str) -> bool:
    """Say whether this message has asked before."""
    found = await run(conn, "request_of_message", tenant=tenant, channel=channel, ts=ts)
    return found.one_or_none() is not None


async def of_key(
    conn: AsyncConnection, tenant: TenantId, agent: PrincipalId, request_key: str
) -> Earlier | None:
    """Find what an agent's own key names already."""
    found = await run(conn, "request_of_key", tenant=tenant, agent=agent, request_key=request_key)
    row = found.one_or_none()
    if row is None:
        return None
    return Earlier(RunId(row.run_id), row.number, bytes(row.content_digest))


async def load_of(
    conn: AsyncConnection, tenant: TenantId, agent: PrincipalId, seconds: float
) -> Load:
    """Count what an agent has under way, and what it asked in vain in the last ``seconds``."""
    row = (await run(conn, "count_requests", tenant=tenant, agent=agent, seconds=seconds)).one()
    return Load(row.under_way, row.in_vain)


async def insert(conn: AsyncConnection, new: NewRequest, now: datetime) -> None:
    """Record a request; a message that has asked before: ``DuplicateKey``."""
    await run(
        conn,
        "insert_request",
        tenant=new.tenant_id,
        id=new.id,
        agent=new.agent,
        channel=new.channel,
        ts=new.ts,
        thread_ts=new.thread_ts,
        request_key=new.request_key,
        kind=new.kind,
        content_digest=new.content_digest,
        outcome=new.outcome.value,
        run=new.run_id,
        answer=json.dumps(new.answer),
        now=now,
    )


async def runs_among(
    conn: AsyncConnection, keys: Iterable[tuple[TenantId, RunId]]
) -> set[tuple[TenantId, RunId]]:
    """Say which of these runs were asked for by agents."""
    wanted = list(keys)
    if not wanted:
        return set()
    rows = await run(
        conn,
        "runs_of_agents",
        tenants=[tenant for tenant, _ in wanted],
        runs=[run_id for _, run_id in wanted],
    )
    return {(TenantId(row.tenant_id), RunId(row.run_id)) for row in rows}


async def show(
    conn: AsyncConnection,
    tenant: TenantId,
    *,
    id_: UUID | None = None,
    run_id: RunId | None = None,
) -> AnyRow | None:
    """Read one request, by its own id or by that of the run that it was accepted as."""
    found = await run(conn, "show_request", tenant=tenant, id=id_, run=run_id)
    return found.one_or_none()


async def agents_among(
    conn: AsyncConnection, tenant: TenantId, principals: Iterable[PrincipalId]
) -> frozenset[PrincipalId]:
    """Say which of these have ever asked for something as agents."""
    rows = await run(conn, "agents_among", tenant=tenant, principals=sorted(set(principals)))
    return frozenset(PrincipalId(row.agent) for row in rows)
