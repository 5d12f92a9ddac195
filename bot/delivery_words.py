"""What people are told of approvals that nobody can see: which, why, and what they can do about it.

Our own sentences, numbers and ids alone, so that they may stand in ``mrkdwn``. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.slack_answers import SHARED, is_refusal
from executor.domain.ids import operation_label

MOST_NAMED = 20
"""Operations that one notice names; the others are counted."""

_WHY = {
    SHARED: (
        "another organisation reads along there",
        "Stop sharing the channel, or choose another one in the policy (slack.channel).",
    ),
    "is_archived": (
        "the channel is archived",
        "Unarchive it, or choose another one in the policy (slack.channel).",
    ),
    "channel_not_found": (
        "the channel is gone, or it is private and the app is not in it",
        "Invite the app, or choose another channel in the policy (slack.channel).",
    ),
    "not_in_channel": (
        "the app is not in the channel",
        "Type `/invite` and the app's name there.",
    ),
    "restricted_action": (
        "the workspace's settings do not let the app post there",
        "Let the app post, or choose another channel in the policy (slack.channel).",
    ),
}
_WHY["is_inactive"] = _WHY["is_archived"]
_WHY["user_is_restricted"] = _WHY["restricted_action"]
_OTHERWISE = (
    "Slack does not take messages for it just now",
    "We go on trying; if it lasts, an operator has to look at the bot's log.",
)
_REFUSED = (
    "Slack refuses what it shows",
    "An operator has to look at the bot's log; until then nothing is done.",
)


_UNANSWERED = (
    "Slack does not say whether it has taken it",
    "We go on looking for it and trying; if it lasts, an operator has to look at the bot's log.",
)


def unseen_text(
    channel: str, problem: str, numbers: Sequence[int], *, of_cards: bool, here: bool
) -> str:
    """Name approvals that wait unseen; ``here`` says that their cards follow where this stands.

    ``of_cards``: nothing is wrong with the channel, the cards themselves are refused.
    """
    named = ", ".join(operation_label(number) for number in numbers[:MOST_NAMED])
    others = len(numbers) - MOST_NAMED
    if others > 0:
        named = f"{named} and {others} more"
    one = len(numbers) == 1
    waits = f"{named} {'waits' if one else 'wait'} for a decision, and nobody can see"
    cards = "its card" if one else "their cards"
    if of_cards:
        why, remedy = _REFUSED if is_refusal(problem) else _UNANSWERED
        return f"{waits} {cards}: {why} ({problem}). {remedy}"
    prefixed = next((v for k, v in _WHY.items() if problem.startswith(f"{k}_")), _OTHERWISE)
    why, remedy = _WHY.get(problem, prefixed)
    follows = f"{cards.capitalize()} {'follows' if one else 'follow'} here. " if here else ""
    return f"{waits} {cards} in <#{channel}>: {why}. {follows}{remedy}"
