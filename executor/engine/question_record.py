"""Reads questions and answers as cards and threads tell them."""

from __future__ import annotations

from uuid import UUID

from executor.domain.ids import OperationId, TenantId
from executor.engine.card_record import QuestionRecord
from executor.store import questions
from executor.store.connection import Connection
from executor.store.questions import QuestionRow


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
