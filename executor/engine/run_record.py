"""A run as it is recorded: all that the next driver has, and all that it needs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.domain.operation import RUN_WAITS_FOR
from executor.domain.policy import Policy
from executor.domain.replay import RecordedCall, RecordedQuestion, RecordedTurn
from executor.domain.stamp import DeskVersion, stamp_from
from executor.engine.access import Access, read_access
from executor.engine.engine import Engine
from executor.engine.outside_tools import OutsideTools
from executor.engine.ports import ToolSpec
from executor.engine.tools import READ_TICKET, tools_for
from executor.store import proposals, questions, runs, tenants

RunKey = tuple[TenantId, RunId]


@dataclass(frozen=True, slots=True)
class Record:
    """A run as it is recorded; ``tools`` are those that its requester could use just now, by the
    rights in ``access``; ``outside`` are those of servers, once they were asked.
    """

    goal: str
    policy: Policy
    turns: tuple[RecordedTurn, ...]
    proposals: dict[tuple[int, int], proposals.ProposalRow]
    questions: tuple[RecordedQuestion, ...]
    next_step: int
    requester: PrincipalId
    tools: tuple[ToolSpec, ...]
    access: Access | None = None
    outside: OutsideTools = field(default_factory=OutsideTools)


async def read_run_record(engine: Engine, key: RunKey) -> Record:
    """Read everything that decides what comes next. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        row = await runs.show(conn, *key)
        steps = await runs.read_steps(conn, key)
        rows = await proposals.of_run(conn, key)
        asked = await questions.of_run(conn, key)
        policy = (await tenants.share_policies(conn, [key[0]]))[key[0]]
        assert row is not None, "a claimed run exists"
        access = await read_access(conn, key[0], row.requester)
    proposed = {(p.step, p.ordinal): p for p in rows}
    pending = {place for place, p in proposed.items() if p.status in RUN_WAITS_FOR}
    return Record(
        row.goal,
        policy,
        _turns(steps, pending, policy.run.max_output_tokens),
        proposed,
        tuple(asked),
        len(steps) + 1,
        row.requester,
        tools_for(access),
        access,
    )


def _turns(
    steps: Sequence[runs.Step], pending: Collection[tuple[int, int]], most_written: int
) -> tuple[RecordedTurn, ...]:
    results = {s.answers: s for s in steps if s.answers is not None}
    return tuple(
        RecordedTurn(
            step.number,
            str(step.content["text"]),
            tuple(_calls(step, results, pending)),
            _tokens(steps[:place], step, most_written),
        )
        for place, step in enumerate(steps)
        if step.kind == "model"
    )


def _tokens(earlier: Sequence[runs.Step], reply: runs.Step, most_written: int) -> int:
    """Count what one call has read and written.

    Where nobody said, it has written as much as it may, and read a token for each byte of what was
    recorded before.
    """
    usage = reply.content.get("usage")
    told = usage if isinstance(usage, dict) else {}
    read, written = told.get("input_tokens"), told.get("output_tokens")
    if not isinstance(read, int):
        read = sum(len(json.dumps(step.content)) for step in earlier)
    return read + (written if isinstance(written, int) else most_written)


def _calls(
    step: runs.Step,
    results: Mapping[tuple[int, int], runs.Step],
    pending: Collection[tuple[int, int]],
) -> Iterator[RecordedCall]:
    asked = step.content["tool_calls"]
    assert isinstance(asked, list)
    for ordinal, call in enumerate(asked):
        place = (step.number, ordinal)
        answer = results.get(place)
        yield RecordedCall(
            *place,
            call["id"],
            call["name"],
            call["arguments"],
            None if answer is None else answer.content["result"],  # type: ignore[arg-type]
            None if answer is None else answer.number,
            answer is None and place in pending,
        )


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
