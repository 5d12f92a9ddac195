"""T6: attempts whose last possible moment is over, whoever holds the lease, get the truth about
them.

A worker can lose its call and go on beating, so the attempt's own deadline counts and not the
lease. What is known without asking anybody depends on the capability that was recorded with the
attempt: an opaque provider tells nothing, so the attempt is unknown and a person has to look. A
transactional effect has no attempts: it commits with its record.
"""

from __future__ import annotations

from typing import assert_never

from executor.domain.effect import Attempt, Capability, Outcome, OutcomeKind
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.group import together_or_apart
from executor.engine.report import Report, report
from executor.store import effects

AT_ONCE = 100


def conclude(attempt: Attempt) -> Outcome:
    """Conclude an attempt that no answer came for, after nothing of it can still arrive."""
    match attempt.capability:
        case Capability.TRANSACTIONAL:
            raise AssertionError("a transactional effect commits with its record")
        case Capability.OPAQUE | Capability.LOOKUP | Capability.KEYED | Capability.CONDITIONAL:
            # Without a way to ask, every other capability is as silent as an opaque one.
            return Outcome(
                OutcomeKind.UNKNOWN,
                {
                    "phase": "no_report",
                    "problem": "the executor stopped before it could record an answer",
                },
            )
        case _:
            assert_never(attempt.capability)


async def reconcile(engine: Engine) -> int:
    """Conclude what is due and return how many attempts that were.

    Opens its own transactions. An answer that arrives meanwhile wins: the report changes only what
    is still open.
    """
    async with engine.database.transaction() as conn:
        due = await effects.to_conclude(conn, AT_ONCE)
    if due:
        await together_or_apart(
            lambda reports: report(engine, reports, Commit.RECONCILE),
            [
                Report((d.tenant_id, d.operation_id), d.attempt.id, conclude(d.attempt), "clock")
                for d in due
            ],
        )
    return len(due)
