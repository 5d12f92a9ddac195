"""What a policy says, in sentences: who may ask and decide, how long, how much, and where to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from bot.duration_text import duration
from executor.domain.policy import Policy, WhenMailIsNotSent

_MICROUSD = 1_000_000


def sentences(policy: Policy) -> list[str]:
    """Say everything that the policy decides; names of people are Slack user ids."""
    approval, run, email = policy.approval, policy.run, policy.email
    return [
        f"Workspace {policy.slack.team}; cards go to channel {policy.slack.channel}.",
        _requesters(policy),
        _approvers(policy),
        "Nobody approves what they asked for themselves, and one rejection ends it.",
        f"There is {duration(approval.decide_within_seconds)} to decide, from when the card is "
        f"shown, and {duration(approval.use_within_seconds)} to carry out what was approved; after "
        "either nothing is done.",
        f"Emails come from {email.sender}"
        + (f", answers go to {email.reply_to}" if email.reply_to else "")
        + f", and have at most {email.max_text_characters} characters.",
        _mail_not_sent(policy.tickets.when_mail_is_not_sent),
        "A desk that mails the customer itself about a close may do so beside our email."
        if policy.tickets.allow_desk_notification
        else "A close at a desk that mails the customer itself is refused: one email, not two.",
        f"One run may cost {_dollars(run.budget_microusd)}, all runs of a day in "
        f"{policy.tenant.timezone} {_dollars(run.day_budget_microusd)}.",
        f"A run ends after {run.max_steps} steps, {duration(run.max_seconds)}, "
        f"{run.max_rejections_in_a_row} rejections or {run.max_tool_errors_in_a_row} failed tool "
        "calls in a row.",
    ]


def _requesters(policy: Policy) -> str:
    named = policy.people.requesters
    who = "Every full member of the workspace" if named == "everyone" else _people(named)
    return f"{who} may ask."


def _approvers(policy: Policy) -> str:
    quorum, named = policy.approval.quorum, policy.people.approvers
    needed = "One of them has" if quorum == 1 else f"{quorum} of them have"
    return f"{_people(named)} may decide. {needed} to approve."


def _people(named: Sequence[str]) -> str:
    return ", ".join(named) if named else "Nobody"


def _mail_not_sent(then: WhenMailIsNotSent) -> str:
    closed = "Where a ticket was closed and its mail was proved not sent,"
    match then:
        case WhenMailIsNotSent.ASK:
            return f"{closed} people are asked whether it is opened again."
        case WhenMailIsNotSent.REOPEN:
            return f"{closed} it is opened again without asking, unless somebody changed it."
        case WhenMailIsNotSent.LEAVE:
            return f"{closed} it stays closed."
        case _:
            assert_never(then)


def _dollars(microusd: int) -> str:
    return f"${microusd / _MICROUSD:,.2f}"
