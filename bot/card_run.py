"""What a run says of itself: its steps as they happen, its end, the agent's last words. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.card_account import AccountPart, account_of
from bot.card_parts import Item, Paragraph, Piece, Words, excerpt, moment, paragraph, person
from bot.card_pause import pause_items
from bot.card_progress import Lines, progress_lines
from bot.reason_text import sentence
from bot.state_text import operation_state, run_state
from bot.typed_money import CENT, in_cents
from bot.visible import END
from executor.domain.ids import operation_label, run_label
from executor.domain.policy import ProgressStyle
from executor.domain.run import ENDED, RunStatus
from executor.engine.card_record import RunRecord
from executor.engine.progress_record import Money

LONGEST_SUMMARY = 3_000
_LONGEST_GOAL = 300
_MOST_OPERATIONS = 10
_AT_WORK = frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING})
"""Whatever had held a run up does so no more."""


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything that the template of a run's message puts into blocks.

    ``operations`` are those that no step tells of, while the run goes on; afterwards ``account``
    tells of all. ``as_plan``: the steps are drawn with Slack's blocks for plans.
    """

    title: str
    status: tuple[Item, ...]
    requester: Piece
    goal: str
    steps: Lines
    as_plan: bool
    operations: tuple[Item, ...]
    account: tuple[AccountPart, ...]
    summary: str


def run_view(record: RunRecord, *, plain: bool = False) -> RunView:
    """Show how a run stands; ``plain``: not as a plan, whatever the policy wants."""
    steps, account = progress_lines(record), account_of(record)
    return RunView(
        title=run_label(record.number),
        status=(_status(record), *pause_items(record.pause)),
        # Where it answers an agent, that agent is not called: it would have to answer again.
        requester=Words("an agent in Slack")
        if record.request is not None
        else person(record.requester, record.tenant_id),
        goal=excerpt(record.goal, _LONGEST_GOAL).text,
        steps=steps,
        as_plan=record.style is ProgressStyle.PLAN and not plain,
        operations=() if account else _operations(record, steps),
        account=account,
        summary=_summary(record.summary),
    )


def _status(record: RunRecord) -> Paragraph:
    state = run_state(record.status)
    pieces: list[Piece | str] = [Words(f"{state[:1].upper()}{state[1:]}.", bold=True)]
    if record.reason is not None and record.pause is None and record.status not in _AT_WORK:
        pieces.append(f" {sentence(record.reason, {})}")
    if record.status in ENDED and record.ended_at is not None:
        pieces += [" Ended at ", moment(record.ended_at), "."]
    if record.model_asked_again_at is not None:
        again = moment(record.model_asked_again_at)
        pieces += [" The language model wants to be asked again at ", again, "."]
    money = record.progress.money
    if money is not None and money.spent_microusd:
        pieces.append(f" {_spent(money)}")
    return paragraph(*pieces)


def _spent(money: Money) -> str:
    spent = money.spent_microusd
    told = in_cents(spent) if spent >= CENT else "Less than a cent"
    return f"{told} of {in_cents(money.limit_microusd)} spent."


def _operations(record: RunRecord, steps: Lines) -> tuple[Item, ...]:
    untold = [one for one in record.operations if one[0] not in steps.operations]
    lines = [
        f"{operation_label(number)}: {operation_state(status)}"
        for number, status in untold[-_MOST_OPERATIONS:]
    ]
    left_out = len(untold) - len(lines)
    if left_out:
        lines.insert(0, f"({left_out} earlier)")
    return (paragraph("\n".join(lines)),) if lines else ()


def _summary(text: str) -> str:
    if not text.strip():
        return ""
    return excerpt(text, LONGEST_SUMMARY - len(END)).text + END
