"""What people are told of a click: recorded or not, and what to do next.

What votes are answered with is in ``vote_replies``, and why something is refused in
``reason_text``. Every one of these sentences is a constant or names a number of ours.
"""

from __future__ import annotations

from executor.domain.ids import operation_label


def edited(operation: int, successor: int) -> str:
    """Confirm an edit that is stored."""
    return (
        f"Recorded: {operation_label(successor)} takes the place of {operation_label(operation)} "
        "with your changes. Somebody else has to approve it."
    )


def proposed_again(operation: int, successor: int, *, before: bool) -> str:
    """Confirm that the same was proposed again, or tell that it had been ``before``."""
    old, new = operation_label(operation), operation_label(successor)
    if before:
        return f"{old} was already proposed again as {new}. Decide on its card."
    return f"Recorded: {old} is proposed again as {new}. Somebody else has to approve it."


def too_long_to_edit() -> str:
    """Tell that an email does not fit into a form."""
    return (
        "This email is too long to be edited in Slack. Reject it and say what to change, "
        "and the agent writes it anew."
    )


def cannot_edit_here() -> str:
    """Tell that this bot does not know how emails leave."""
    return (
        "Nothing was recorded: this bot does not know the mail settings, so it can neither edit "
        "nor propose again. An operator has to give it those of the executor."
    )


def no_link() -> str:
    """Tell that the second factor cannot be asked for just now."""
    return (
        "The link for your second factor could not be sent, so nothing was recorded. Click again; "
        "if it goes on, tell an operator."
    )


def not_confirmed() -> str:
    """Tell that a click may have been recorded or not."""
    return "Not confirmed: your click may have been recorded or not. The card will show it."


def database_away() -> str:
    """Tell that a click was not recorded."""
    return "Nothing was recorded: our database is away. Wait a minute and click again."


def outdated_card() -> str:
    """Tell that the button belongs to no card that we know, or to an old drawing of one."""
    return "Nothing was recorded: this card is out of date. Use the newest card."


def shown_otherwise() -> str:
    """Tell on a card that it cannot be approved, because Slack changed what it shows."""
    return "Slack shows this otherwise than it was sent, so it cannot be approved here."


def view_not_opened() -> str:
    """Tell that the window for reading or for a reason did not open."""
    return "Nothing was recorded: Slack did not open the window. Click again."


def replaced_card() -> str:
    """Stand on a message that is no longer the card."""
    return "This card has been replaced. The newest card shows how it stands."


def identity_unverified() -> str:
    """Tell that Slack did not say in time who somebody is."""
    return "Nothing was recorded: Slack cannot tell us right now who you are. Try again."
