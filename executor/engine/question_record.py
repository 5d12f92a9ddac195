"""Reads questions and answers as cards and threads tell them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from executor.domain.ids import OperationId, PrincipalId, TenantId
from executor.domain.transition import Reason
from executor.store import questions
from executor.store.connection import Connection
from executor.store.questions import QuestionRow


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """What a person asked about an operation, and the agent's words where it has answered.

    ``unanswered`` is why there is no answer and will be none. Both texts are untrusted.
    """

    tenant_id: TenantId
    id: UUID
    operation: int
    asked_by: PrincipalId
    asked_at: datetime
    question: str
    answer: str | None
    unanswered: Reason | None


async def read_question(conn: Connection, tenant: TenantId, id_: UUID) -> QuestionRecord:
    """Read everything that the message about one question may say."""
    found = await questions.show(conn, tenant, id_)
    assert found is not None, "a told question exists"
    return _record(tenant, *found)


async def questions_about(
    conn: Connection, tenant: TenantId, id_: OperationId, number: int
) -> tuple[QuestionRecord, ...]:
    """Read what people asked about one operation, oldest first."""
    key = (tenant, id_)
    rows = (await questions.of_operations(conn, [key])).get(key, [])
    return tuple(_record(tenant, row, number) for row in rows)


def _record(tenant: TenantId, row: QuestionRow, number: int) -> QuestionRecord:
    return QuestionRecord(
        tenant,
        row.id,
        number,
        row.asked_by,
        row.asked_at,
        row.question,
        row.answer,
        row.unanswered,
    )
