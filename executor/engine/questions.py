"""Questions of people inside a run: taken up as steps, then closed with an answer or without one.

Only the holder of the run's lease writes steps, so that a reply that is being made meanwhile cannot
come to stand behind a question that its model has not seen. Asking is in ``asking``. Locks: runs,
cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Sequence

from executor.domain.ids import operation_label
from executor.domain.payloads import JsonObject, storable, storable_text
from executor.domain.replay import CloseQuestions, RecordedQuestion
from executor.engine.accept import lock_working_run
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.leases import Keeper
from executor.engine.run_record import RunKey
from executor.store import cards, clock, journal, progress, questions, runs
from executor.store.cards import SubjectKind
from executor.store.wakeups import Kind

LONGEST_ANSWER = 10_000
ANSWERED, NOT_ANSWERED = "question_answered", "question_not_answered"
"""The journal's notes about how a question was closed."""


async def take_up(
    engine: Engine,
    key: RunKey,
    keeper: Keeper,
    asked: Sequence[RecordedQuestion],
    next_step: int,
) -> None:
    """Record questions as steps from ``next_step`` on; opens its own transaction.

    Raises ``StaleEpoch`` when the lease is lost.
    """
    async with engine.committing(Commit.RECORD_RESULT) as conn:
        await lock_working_run(conn, key, keeper.epoch)
        await progress.want(conn, [key])
        now = await clock.now(conn)
        steps = [(question.id, next_step + place) for place, question in enumerate(asked)]
        for question, (_, number) in zip(asked, steps, strict=True):
            said = {
                "question": question.text,
                "by": question.by,
                "operation": operation_label(question.operation),
            }
            content = storable(said)
            assert isinstance(content, dict)
            await runs.record_step(conn, key, runs.Step(number, "question", None, content, now))
        await questions.take_up(conn, key[0], steps)
    engine.ring(Kind.CARDS)


async def close(engine: Engine, key: RunKey, keeper: Keeper, closing: CloseQuestions) -> None:
    """Record how questions were closed, and have it told; opens its own transaction.

    Raises ``StaleEpoch`` when the lease is lost.
    """
    tenant = key[0]
    answer = None if closing.answer is None else storable_text(closing.answer)[:LONGEST_ANSWER]
    async with engine.committing(Commit.RECORD_RESULT) as conn:
        await lock_working_run(conn, key, keeper.epoch)
        closed = await questions.close(
            conn,
            tenant,
            [question.id for question in closing.questions],
            await clock.now(conn),
            answer=answer,
            unanswered=closing.reason,
        )
        await cards.lock(conn, [(tenant, id_) for ids in closed for id_ in ids])
        chain = await journal.lock_chain(conn, [key])
        told: JsonObject = (
            {"answer": answer} if closing.reason is None else {"reason": closing.reason.value}
        )
        event = ANSWERED if closing.reason is None else NOT_ANSWERED
        await journal.write_notes(
            conn,
            [
                chain.note(
                    tenant, key[1], id_, event, keeper.owner, {"operation": str(operation), **told}
                )
                for id_, operation in closed
            ],
        )
        about = [(tenant, operation, SubjectKind.OPERATION) for _, operation in closed]
        told_of = [(tenant, id_, SubjectKind.QUESTION) for id_, _ in closed]
        await cards.want(conn, [*about, *told_of], chain.now)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
