"""What Signoff answers to its commands: what was started or cancelled, and how runs stand."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from bot.mrkdwn import hint
from bot.reason_text import sentence
from bot.state_text import run_state
from executor.domain.ids import operation_label, run_label
from executor.domain.run import RunStatus
from executor.domain.transition import Reason

COMMANDS = ("start", "status", "cancel", "pending", "grants", "delegate", "budget", "help")
"""The words that may follow the slash command."""


def command_not_confirmed() -> str:
    """Tell that a command may have been carried out or not."""
    return f"Not confirmed: it may have been recorded or not. {hint('status')} shows it."


def command_not_recorded() -> str:
    """Tell that a command was not carried out."""
    return "Nothing was recorded: our database is away. Wait a minute and try again."


def run_wanted(verb: str) -> str:
    """Ask for what is missing after a command's word."""
    if verb == "cancel":
        return f"Which run? For example: {hint('cancel run_7')}"
    return f"Which goal? For example: {hint('start close ticket 4101')}"


def still_running(run: int) -> str:
    """Point to the run that the same words started a moment ago."""
    return f"{run_label(run)} is already working on this; nothing was started twice."


def started(run: int) -> str:
    """Confirm a run that is stored."""
    return f"Started {run_label(run)}. {hint(f'status {run_label(run)}')} shows how it is going."


def status_line(
    run: int,
    status: RunStatus,
    waiting_operations: Sequence[int] = (),
    at_work: int | None = None,
) -> str:
    """Say where a run stands, which operations people have to decide, and what has all places."""
    line = f"{run_label(run)}: {run_state(status, at_work)}"
    if waiting_operations:
        names = ", ".join(operation_label(number) for number in waiting_operations)
        line += f"; waits for a decision on {names}"
    return f"{line}."


def no_runs() -> str:
    """Say that there is nothing to list."""
    return f"There are no runs. {hint('start')} and a goal start one."


def cancelled(run: int) -> str:
    """Confirm a cancel that came before anything was sent."""
    return f"Cancelled {run_label(run)}. What was not sent yet will not be sent."


def cancelled_after(run: int, done: Sequence[int]) -> str:
    """Confirm a cancel that came after something was done."""
    names = ", ".join(operation_label(number) for number in done)
    return f"{cancelled(run)} Too late for {names}: already done."


def cancelled_too_late(run: int) -> str:
    """Confirm a cancel that came after something was sent."""
    return (
        f"Cancelling {run_label(run)}, but something is already being sent and cannot be called "
        "back. The card will show how it ended."
    )


def run_unknown() -> str:
    """Say that no run has that number."""
    return sentence(Reason.RUN_UNKNOWN, {})


def operation_unknown() -> str:
    """Say that no operation has that number."""
    return f"There is no such operation. {hint('pending')} lists what waits for you."


def unknown_command(word: str) -> str:
    """Answer a word that is no command; the word itself, being untrusted, is not repeated."""
    near = difflib.get_close_matches(word.lower()[:20], COMMANDS, n=1)
    if near:
        return f"There is no such command. Did you mean {hint(near[0])}?"
    return f"There is no such command.\n{help_text()}"


def help_text() -> str:
    """List the commands."""
    return "\n".join(
        (
            f"{hint('start')} and a goal: start a run, for example: close ticket 4101",
            f"{hint('status')}: list the runs; with run_7: show that one",
            f"{hint('cancel')} run_7: stop a run before it sends anything more",
            f"{hint('pending')}: list what waits for your decision; with op_12: show all of it",
            f"{hint('grants')}: list the roles given to you or by you; give and revoke them",
            f"{hint('delegate')} @somebody approver until 2026-12-24: pass on a role of yours",
            f"{hint('budget')}: how much money is spent, held and left; with run_7: of that run",
            f"{hint('help')}: show this",
        )
    )
