"""A run as it is recorded: all that the next driver has, and all that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from executor.domain.ids import RunId, TenantId
from executor.domain.policy import Policy
from executor.domain.replay import RecordedCall, RecordedTurn
from executor.domain.stamp import DeskVersion, stamp_from
from executor.engine.engine import Engine
from executor.engine.tools import READ_TICKET
from executor.store import proposals, runs, tenants

RunKey = tuple[TenantId, RunId]


@dataclass(frozen=True, slots=True)
class Record:
    """A run as it is recorded."""

    goal: str
    policy: Policy
    turns: tuple[RecordedTurn, ...]
    proposals: dict[tuple[int, int], proposals.ProposalRow]
    next_step: int


async def read_run_record(engine: Engine, key: RunKey) -> Record:
    """Read everything that decides what comes next. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        row = await runs.show(conn, *key)
        steps = await runs.read_steps(conn, key)
        proposed = await proposals.of_run(conn, key)
        policy = (await tenants.share_policies(conn, [key[0]]))[key[0]]
    assert row is not None, "a claimed run exists"
    return Record(
        row.goal,
        policy,
        _turns(steps),
        {(p.step, p.ordinal): p for p in proposed},
        len(steps) + 1,
    )


def _turns(steps: Sequence[runs.Step]) -> tuple[RecordedTurn, ...]:
    results = {s.answers: s.content["result"] for s in steps if s.answers is not None}
    turns = []
    for step in steps:
        if step.kind != "model":
            continue
        calls = step.content["tool_calls"]
        assert isinstance(calls, list)
        turns.append(
            RecordedTurn(
                step.number,
                str(step.content["text"]),
                tuple(
                    RecordedCall(
                        step.number,
                        ordinal,
                        call["id"],
                        call["name"],
                        call["arguments"],
                        results.get((step.number, ordinal)),  # type: ignore[arg-type]
                    )
                    for ordinal, call in enumerate(calls)
                ),
            )
        )
    return tuple(turns)


def version_read(record: Record, step: int, ticket_id: str) -> DeskVersion | None:
    """Return the version of the ticket that the model had been shown when it made reply ``step``.

    A read in that same reply does not count, also not after a crash in between.
    """
    for turn in reversed([turn for turn in record.turns if turn.step < step]):
        for call in reversed(turn.calls):
            result = call.result or {}
            if call.name == READ_TICKET and result.get("id") == ticket_id:
                version = result.get("version")
                counted = version if isinstance(version, int) else None
                return stamp_from(result.get("stamp")) or counted
    return None
