"""The run of an agent's closing ends as its operation has ended, and says so where it was asked.

Decided where runs are woken, with the run and its operations locked.
"""

from __future__ import annotations

from collections.abc import Sequence

from executor.domain import operation
from executor.domain.journal import Chain
from executor.domain.operation import OperationStatus
from executor.domain.transition import Reason
from executor.engine import undriven
from executor.store import runs
from executor.store.connection import Connection
from executor.store.proposals import ProposalRow

_OF_ANOTHER_RUN = frozenset({Reason.CANCELLED, Reason.REJECTED_AND_STOPPED})


async def conclude(
    conn: Connection, chain: Chain, row: runs.RunRow, proposed: Sequence[ProposalRow]
) -> None:
    """End the run: it succeeded where its operation did, and failed for that one's reason else.

    ``proposed`` are all of its proposals; the last one is the agent's, before it stand people who
    have asked for the same.
    """
    await undriven.complete(conn, chain, row, failed=_failed(proposed[-1]), tells=True)


def _failed(ended: ProposalRow) -> Reason | None:
    if ended.status is OperationStatus.SUCCEEDED:
        return None
    if ended.reason is None or ended.reason in _OF_ANOTHER_RUN:
        # What stopped another run has not stopped this one.
        return operation.refusal_for(ended.status)
    return ended.reason
