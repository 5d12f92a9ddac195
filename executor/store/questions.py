"""What people asked about operations. Nobody asks, takes up or closes without the run's lock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import LostRace
from executor.domain.ids import OperationId, PrincipalId, RunId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.replay import RecordedQuestion
from executor.domain.transition import Reason
from executor.store.card_records import AnyRow
from executor.store.operations import OperationKey
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question to be recorded."""

    tenant_id: TenantId
    id: UUID
    run_id: RunId
    operation_id: OperationId
    asked_by: PrincipalId
    question: str
    request_hash: bytes


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question as it stands; once closed it has an answer or says why not."""

    id: UUID
    operation_id: OperationId
    asked_by: PrincipalId
    question: str
    asked_at: datetime
    answer: str | None
    unanswered: Reason | None
    closed_at: datetime | None


async def insert(conn: AsyncConnection, new: Sequence[NewQuestion], now: datetime) -> None:
    """Record questions; a request that has asked before: ``DuplicateKey``."""
    await run(
        conn,
        "insert_questions",
        tenants=[q.tenant_id for q in new],
        ids=[q.id for q in new],
        runs=[q.run_id for q in new],
        operations=[q.operation_id for q in new],
        askers=[q.asked_by for q in new],
        questions=[q.question for q in new],
        hashes=[q.request_hash for q in new],
        now=now,
    )


async def of_operations(
    conn: AsyncConnection, keys: Iterable[OperationKey]
) -> dict[OperationKey, list[QuestionRow]]:
    """Read all questions about operations, oldest first."""
    wanted = list(keys)
    rows = await run(
        conn,
        "questions_of_operations",
        tenants=[tenant for tenant, _ in wanted],
        operations=[id_ for _, id_ in wanted],
    )
    found: dict[OperationKey, list[QuestionRow]] = {}
    for row in rows:
        key = (TenantId(row.tenant_id), OperationId(row.operation_id))
        found.setdefault(key, []).append(_row(row))
    return found


async def show(
    conn: AsyncConnection, tenant: TenantId, id_: UUID
) -> tuple[QuestionRow, int] | None:
    """Read one question with its operation's number."""
    row = (await run(conn, "show_question", tenant=tenant, id=id_)).one_or_none()
    return None if row is None else (_row(row), row.number)


async def of_run(conn: AsyncConnection, key: tuple[TenantId, RunId]) -> list[RecordedQuestion]:
    """Read what a run has taken up, and what it still has to."""
    rows = await run(conn, "questions_of_run", tenant=key[0], run=key[1])
    return [
        RecordedQuestion(
            row.id,
            row.number,
            row.asked_by,
            row.question,
            row.step,
            row.is_open,
            row.status == OperationStatus.AWAITING,
        )
        for row in rows
    ]


async def something_is_asked(conn: AsyncConnection, key: tuple[TenantId, RunId]) -> bool:
    """Say whether a locked run has an open question."""
    asked = await run(conn, "something_is_asked", tenant=key[0], run=key[1])
    return bool(asked.scalar_one())


async def take_up(
    conn: AsyncConnection, tenant: TenantId, steps: Sequence[tuple[UUID, int]]
) -> None:
    """Remember as which steps questions were taken up; any taken up before: ``LostRace``."""
    taken = await run(
        conn,
        "take_up_questions",
        tenant=tenant,
        ids=[id_ for id_, _ in steps],
        steps=[step for _, step in steps],
    )
    lost = len(steps) - len(taken.all())
    if lost:
        raise LostRace("take_up_questions", lost)


async def close(
    conn: AsyncConnection,
    tenant: TenantId,
    ids: Sequence[UUID],
    now: datetime,
    *,
    answer: str | None,
    unanswered: Reason | None,
) -> list[tuple[UUID, OperationId]]:
    """Close open questions and name their operations; any closed before: ``LostRace``."""
    rows = await run(
        conn,
        "close_questions",
        tenant=tenant,
        ids=list(ids),
        answer=answer,
        unanswered=unanswered and unanswered.value,
        now=now,
    )
    closed = [(row.id, OperationId(row.operation_id)) for row in rows]
    if len(closed) != len(ids):
        raise LostRace("close_questions", len(ids) - len(closed))
    return closed


async def of_request(conn: AsyncConnection, tenant: TenantId, request_hash: bytes) -> bool:
    """Say whether a signed request has asked something."""
    asked = await run(conn, "question_of_request", tenant=tenant, request_hash=request_hash)
    return asked.one_or_none() is not None


def _row(row: AnyRow) -> QuestionRow:
    return QuestionRow(
        row.id,
        OperationId(row.operation_id),
        PrincipalId(row.asked_by),
        row.question,
        row.asked_at,
        row.answer,
        None if row.unanswered is None else Reason(row.unanswered),
        row.closed_at,
    )
