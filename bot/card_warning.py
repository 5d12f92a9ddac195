"""The message that a limit of the budget is near. Pure."""

from __future__ import annotations

from bot.card_parts import Item, Words, paragraph
from bot.typed_money import dollars
from executor.domain.ids import run_label
from executor.engine.card_record import WarningRecord


def warning_items(record: WarningRecord) -> tuple[Item, ...]:
    """Say of whose limit how much is gone, and what happens when all of it is."""
    gone = f"{dollars(record.used_microusd)} of {dollars(record.limit_microusd)}"
    percent = record.used_microusd * 100 // record.limit_microusd
    if record.run is not None:
        return (
            paragraph(
                Words(f"{run_label(record.run)} has used {percent} % of its limit. ", bold=True),
                f"{gone} is spent, or held for calls of unknown cost. At the limit the run pauses "
                "and asks for more.",
            ),
        )
    return (
        paragraph(
            Words(f"{percent} % of the limit of {record.day} is used. ", bold=True),
            f"{gone} is spent, or held for calls of unknown cost. At the limit runs pause until "
            "the next day, or until more is approved.",
        ),
    )


def warning_text(record: WarningRecord) -> str:
    """Say in one line what the message is, where blocks cannot be shown."""
    whose = record.day if record.run is None else run_label(record.run)
    return f"Budget: the limit of {whose} is near"
