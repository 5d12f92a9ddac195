"""What people are told of their votes: recorded, and what follows, or decided before."""

from __future__ import annotations

from bot.mrkdwn import mention
from executor.domain.approval import Vote
from executor.domain.ids import PrincipalId, operation_label

_VERBS = {Vote.APPROVE: "approved", Vote.REJECT: "rejected"}


def recorded(vote: Vote, operation: int, *, still_needed: int) -> str:
    """Confirm a vote that is stored; ``still_needed`` counts the approvals that are missing."""
    said = recorded_alone(vote, operation)
    if vote is Vote.REJECT:
        return f"{said} Nothing will be sent, and the agent is told why."
    return f"{said} {_lacking(still_needed) or 'The card will show what came of it.'}"


def recorded_raise(vote: Vote, operation: int, *, still_needed: int) -> str:
    """Confirm a vote that is stored about raising a limit of the budget."""
    label = operation_label(operation)
    if vote is Vote.REJECT:
        return f"Recorded: you said not to raise the limit ({label}). It stays as it is."
    said = f"Recorded: you said to raise the limit ({label})."
    return f"{said} {_lacking(still_needed) or 'What waits for it goes on by itself.'}"


def recorded_reopening(vote: Vote, operation: int, *, still_needed: int) -> str:
    """Confirm a vote that is stored about opening a ticket again."""
    label = operation_label(operation)
    if vote is Vote.REJECT:
        return f"Recorded: you said to leave the ticket closed ({label}). Nothing is done to it."
    said = f"Recorded: you said to open the ticket again ({label})."
    return f"{said} {_lacking(still_needed) or 'The card will show what came of it.'}"


def recorded_alone(vote: Vote, operation: int) -> str:
    """Confirm a vote that is stored, without what follows from it."""
    return f"Recorded: you {_VERBS[vote]} {operation_label(operation)}."


def already_decided(vote: Vote, operation: int, by: PrincipalId) -> str:
    """Tell that somebody, perhaps the same person, decided before this click."""
    return f"{operation_label(operation)} was already {_VERBS[vote]} by {mention(by)}."


def _lacking(approvals: int) -> str:
    """Say how many approvals are missing, or nothing where none is."""
    if approvals <= 0:
        return ""
    return f"It needs {approvals} more approval{'' if approvals == 1 else 's'}."
