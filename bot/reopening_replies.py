"""What people are told of their votes about opening a ticket again."""

from __future__ import annotations

from executor.domain.approval import Vote
from executor.domain.ids import operation_label


def recorded_reopening(vote: Vote, operation: int, *, still_needed: int) -> str:
    """Confirm a vote that is stored; ``still_needed`` counts the approvals that are missing."""
    label = operation_label(operation)
    if vote is Vote.REJECT:
        return f"Recorded: you said to leave the ticket closed ({label}). Nothing is done to it."
    said = f"Recorded: you said to open the ticket again ({label})."
    if still_needed > 0:
        return f"{said} It needs {still_needed} more approval{'' if still_needed == 1 else 's'}."
    return f"{said} The card will show what came of it."
