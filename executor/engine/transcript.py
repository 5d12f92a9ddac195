"""What a model reads of its run: its own replies, and all that has come in since, in order.

A reply may be made while what an earlier call proposed still waits, for somebody asked about it.
Then the call has a result that says so, and what came of it is told later, as news. So a model
never reads an answer of its own that it could not have given at the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from executor.domain.ids import PrincipalId, operation_label, slack_user
from executor.domain.operation import OperationStatus
from executor.domain.others_words import spelled
from executor.domain.replay import RecordedCall, RecordedQuestion
from executor.domain.secret_text import LOOKS_ALONE
from executor.engine.instructions import instructions_for
from executor.engine.ports import (
    ModelReply,
    ModelRequest,
    Question,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from executor.engine.run_record import Record
from executor.engine.tool_results import proposal_result

_FOR_EVER = 2**31


def request_of(record: Record, *, tools: Sequence[ToolSpec] | None = None) -> ModelRequest:
    """Make the next request of a run from its record; it is offered the record's tools by default.

    Our instructions, the requester's goal and what others wrote never stand in one text.
    """
    offered = record.tools if tools is None else tools
    earlier: list[RecordedCall] = []
    turns = []
    for place, turn in enumerate(record.turns, start=1):
        end = record.turns[place].step if place < len(record.turns) else _FOR_EVER
        calls = tuple(ToolCall(c.id, c.name, c.arguments) for c in turn.calls)
        results = tuple(_result(record, call, end) for call in turn.calls)
        news: list[tuple[int, ToolResult | Question]] = [
            (call.answered_at, _result(record, call, end))
            for call in earlier
            if call.answered_at is not None and turn.step < call.answered_at < end
        ]
        news += [
            (question.step, _question(question))
            for question in record.questions
            if question.step is not None and turn.step < question.step < end
        ]
        news.sort(key=lambda item: item[0])
        turns.append(
            Turn(ModelReply(turn.text, calls, None, None), results, tuple(said for _, said in news))
        )
        earlier += turn.calls
    return ModelRequest(
        LOOKS_ALONE.hide(record.goal),
        offered,
        turns,
        record.policy.run.max_output_tokens,
        instructions=instructions_for(record.policy, [tool.name for tool in offered]),
        prices=record.policy.prices,
    )


def _result(record: Record, call: RecordedCall, end: int) -> ToolResult:
    """Tell what a call had come to before step ``end``."""
    asked = ToolCall(call.id, call.name, call.arguments)
    if call.result is not None and call.answered_at is not None and call.answered_at < end:
        return ToolResult(asked, call.result)
    proposal = record.proposals.get((call.step, call.ordinal))
    if proposal is None:
        return ToolResult(asked, {})
    waits = proposal_result(OperationStatus.AWAITING, proposal.number, None, {})
    return ToolResult(asked, waits)


def _question(question: RecordedQuestion) -> Question:
    user = slack_user(PrincipalId(question.by))
    by = question.by if user is None else f"<@{user[1]}>"
    return Question(by, operation_label(question.operation), spelled(question.text))
