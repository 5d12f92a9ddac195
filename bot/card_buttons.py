"""The buttons of an operation's card: which there are, what they say, and what each click is about.

A button more is one more entry in ``buttons_of``, and its listener. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

from bot.card_compensation import verbs_of
from bot.card_doubt import in_doubt
from bot.card_revision import may_be_proposed_again
from bot.card_ticket import moved_on
from bot.doubt_replies import label
from executor.domain.approval import ApprovalStatus
from executor.domain.operation import OperationStatus
from executor.engine.card_record import OperationRecord
from executor.engine.word import Said

MOST_IN_A_ROW = 5
"""Buttons, with the menu of all others, that a row shows; Slack would take 25."""

MENU = "more"
"""The action of that menu; each of its choices names a button's action and what it is about."""

_RISKY = frozenset({Said.SEND_AGAIN})


class About(Enum):
    """What a click on a button names: see ``ButtonValue``, ``SettleValue``, ``operation_value``."""

    CONTENT = auto()
    ATTEMPT = auto()
    OPERATION = auto()


class Extent(Enum):
    """How much of its operation the card shows that the buttons stand on."""

    ALL = auto()
    ALL_THAT_IS_BOUND = auto()
    """What explains it is shortened; what an approval binds is whole."""
    PARTS = auto()


@dataclass(frozen=True, slots=True)
class Confirm:
    """The question that Slack asks before a click counts; its text is followed by the digest."""

    title: str
    yes: str
    no: str = "Go back"


@dataclass(frozen=True, slots=True)
class ButtonSpec:
    """One button; ``label`` is a constant of ours, of at most 75 characters."""

    action_id: str
    label: str
    style: Literal["", "primary", "danger"] = ""
    confirm: Confirm | None = None
    about: About = About.CONTENT


def buttons_of(record: OperationRecord, extent: Extent = Extent.ALL) -> list[ButtonSpec]:
    """List the buttons of a card, in order.

    Approve stands only under everything that it binds; else *Review in full* leads to where it is.
    """
    return [
        *_again(record),
        *_deciding(record, extent),
        *_words(record),
        *_asking(record),
        *_withdrawing(record),
    ]


def in_a_row(buttons: Sequence[ButtonSpec]) -> tuple[Sequence[ButtonSpec], Sequence[ButtonSpec]]:
    """Split what does not fit into one row off its end: that stands in a menu behind it.

    Only what is about an operation as such can: a choice of a menu holds few characters.
    """
    if len(buttons) <= MOST_IN_A_ROW:
        return buttons, ()
    kept = MOST_IN_A_ROW - 1
    menu = [button for button in buttons[kept:] if button.about is About.OPERATION]
    return [button for button in buttons if button not in menu], menu


def is_open(record: OperationRecord) -> bool:
    """Tell whether it still waits for people."""
    return (
        record.status is OperationStatus.AWAITING and record.approval.status is ApprovalStatus.OPEN
    )


def may_approve(record: OperationRecord) -> bool:
    """Tell whether an approval would count."""
    return is_open(record) and not moved_on(record)


def _deciding(record: OperationRecord, extent: Extent) -> list[ButtonSpec]:
    if not is_open(record):
        return []
    verbs = verbs_of(record)
    buttons = []
    approvable = may_approve(record) and extent is not Extent.PARTS
    if approvable:
        question = Confirm(verbs.question, verbs.approve)
        buttons.append(ButtonSpec("approve", verbs.approve, "primary", question))
    if extent is not Extent.ALL:
        style: Literal["", "primary"] = "" if approvable else "primary"
        buttons.append(ButtonSpec("review", "Review in full", style))
    if may_approve(record) and record.email is not None:
        buttons.append(ButtonSpec("edit", "Edit"))
    return [*buttons, ButtonSpec("reject", verbs.reject, "danger")]


def _again(record: OperationRecord) -> list[ButtonSpec]:
    """Let the same be asked for once more where the ticket has moved on."""
    if not may_be_proposed_again(record):
        return []
    return [ButtonSpec("propose_again", "Propose again", "primary")]


def _asking(record: OperationRecord) -> list[ButtonSpec]:
    """Let people ask the agent about what they could decide, where an agent has proposed it."""
    if not may_approve(record) or not _is_of_an_agent(record):
        return []
    return [ButtonSpec("ask", "Ask the agent", about=About.OPERATION)]


def _withdrawing(record: OperationRecord) -> list[ButtonSpec]:
    """Let it be taken back as long as nothing was done; a card shows that to everybody alike."""
    unopened = is_open(record) or record.status is OperationStatus.APPROVED
    if not unopened or not _is_of_an_agent(record):
        return []
    question = Confirm("Withdraw this?", "Withdraw")
    return [ButtonSpec("withdraw", "Withdraw", confirm=question, about=About.OPERATION)]


def _is_of_an_agent(record: OperationRecord) -> bool:
    """Tell it from what the policy asks for by itself: to undo something, or to raise a limit."""
    return record.undoes is None and record.raising is None


def _words(record: OperationRecord) -> list[ButtonSpec]:
    """List the words that a person may give; to do it once more only where it would count."""
    found = in_doubt(record)
    if record.doubt is None or found is None:
        return []
    kind = found[0].kind.value
    return [
        ButtonSpec(
            f"settle_{said.value}",
            label(said, kind),
            "danger" if said in _RISKY else "",
            about=About.ATTEMPT,
        )
        for said in Said
        if said is not Said.SEND_AGAIN or record.doubt.may_send_again
    ]
