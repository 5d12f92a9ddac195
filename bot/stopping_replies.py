"""What people are told who ask, take back, or stop a run along with a rejection."""

from __future__ import annotations

from collections.abc import Sequence

from bot.mrkdwn import hint
from executor.domain.ids import operation_label, run_label


def question_wanted() -> str:
    """Ask for words where somebody asked with blanks alone."""
    return "Nothing was recorded: write what you want to know."


def asked(operation: int) -> str:
    """Confirm a question that is stored."""
    return (
        f"Recorded: your question about {operation_label(operation)} goes to the agent. It answers "
        "in the card's thread; deciding need not wait for it."
    )


def withdrawn(operation: int) -> str:
    """Confirm a withdrawal that is stored."""
    return f"Recorded: {operation_label(operation)} is withdrawn. Nothing of it was done."


def run_stopped(run: int, sending: Sequence[int]) -> str:
    """Say what a rejection that stops a run has ended beside the operation."""
    if not sending:
        return f"{run_label(run)} was stopped with it, and nothing more of it is sent."
    names = ", ".join(operation_label(number) for number in sending)
    return (
        f"{run_label(run)} was stopped with it, but {names} is being sent already and cannot be "
        "called back. Its card will show how it ended."
    )


def run_goes_on(run: int) -> str:
    """Say that a run was not stopped, since the rejection did not count."""
    return f"{run_label(run)} was not stopped; {hint(f'cancel {run_label(run)}')} stops it."
