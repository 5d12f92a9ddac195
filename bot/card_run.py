"""What a run's own card says: how it stands or ended, and the agent's last words. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.card_parts import Item, Paragraph, Piece, Words, excerpt, moment, paragraph, person
from bot.replies import operation_state, run_state, sentence
from bot.visible import END
from executor.domain.ids import operation_label, run_label
from executor.domain.run import ENDED
from executor.engine.card_record import RunRecord

LONGEST_SUMMARY = 3_000
_LONGEST_GOAL = 300
_MOST_OPERATIONS = 10


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything that the template of a run's card puts into blocks."""

    title: str
    status: tuple[Item, ...]
    requester: Piece
    goal: str
    operations: tuple[Item, ...]
    summary: str


def run_view(record: RunRecord) -> RunView:
    """Show how a run stands."""
    return RunView(
        title=run_label(record.number),
        status=(_status(record),),
        requester=person(record.requester, record.tenant_id),
        goal=excerpt(record.goal, _LONGEST_GOAL).text,
        operations=_operations(record),
        summary=_summary(record.summary),
    )


def _status(record: RunRecord) -> Paragraph:
    state = run_state(record.status)
    pieces: list[Piece | str] = [Words(f"{state[:1].upper()}{state[1:]}. ", bold=True)]
    if record.reason is not None:
        pieces.append(f"{sentence(record.reason, {})} ")
    if record.status in ENDED and record.ended_at is not None:
        pieces += ["Ended at ", moment(record.ended_at), "."]
    return paragraph(*pieces)


def _operations(record: RunRecord) -> tuple[Item, ...]:
    lines = [
        f"{operation_label(number)}: {operation_state(status)}"
        for number, status in record.operations[-_MOST_OPERATIONS:]
    ]
    left_out = len(record.operations) - len(lines)
    if left_out:
        lines.insert(0, f"({left_out} earlier)")
    return (paragraph("\n".join(lines)),) if lines else ()


def _summary(text: str) -> str:
    if not text.strip():
        return ""
    return excerpt(text, LONGEST_SUMMARY - len(END)).text + END
