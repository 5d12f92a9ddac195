"""What a policy says, in sentences: who may ask and decide, how long, how much, and where to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from bot.card_parts import one_line
from bot.duration_text import duration
from bot.policy_money_text import money_sentences
from bot.policy_server_text import server_sentences
from bot.terms_text import domains_of, listing, rule_words, who_words
from executor.domain.policy import (
    ApprovalSection,
    Policy,
    ProgressStyle,
    WhenMailIsNotSent,
    WhenTimeIsOver,
)


def sentences(policy: Policy) -> list[str]:
    """Say everything that the policy decides; names of people are Slack user ids."""
    run, email = policy.run, policy.email
    return [
        _places(policy),
        _progress(policy.slack.progress),
        *_people(policy),
        *_roles(policy),
        "Grants give roles to others beside this file: `signoff grants list` tells them.",
        "Nobody approves what they asked for or wrote themselves, and one rejection ends it.",
        *_deciding(policy.approval),
        *_rules(policy),
        f"Emails come from {email.sender}"
        + (f", answers go to {email.reply_to}" if email.reply_to else "")
        + f", and have at most {email.max_text_characters} characters.",
        _signature(email.signature),
        f"Links to {listing(domains_of(email))} are not external.",
        mail_not_sent_words(policy.tickets.when_mail_is_not_sent),
        "A desk that mails the customer itself about a close may do so beside our email."
        if policy.tickets.allow_desk_notification
        else "A close at a desk that mails the customer itself is refused: one email, not two.",
        *money_sentences(policy),
        *server_sentences(policy.servers),
        f"A run ends after {run.max_steps} steps, {duration(run.max_seconds)}, "
        f"{run.max_rejections_in_a_row} rejections, {run.max_identical_proposals} equal proposals "
        f"or {run.max_tool_errors_in_a_row} failed tool calls in a row.",
        f"It ends as well when models have read and written {run.max_tokens:,} tokens in it, or "
        f"when it has waited {duration(run.max_parked_seconds)} in a row for people or for money.",
        f"One reply of the model has at most {run.max_output_tokens} tokens.",
        f"At most {policy.admission.max_active_runs:,} runs are at work at once; "
        f"{policy.admission.max_queued_runs:,} more may wait for a place, and beyond that none is "
        "taken on. What waits for people or for money takes no place.",
        f"People may ask the agent {run.max_questions} questions about one proposal.",
    ]


def _places(policy: Policy) -> str:
    slack = policy.slack
    told = (
        f"{policy.tenant.name}, workspace {slack.team}, in the time zone "
        f"{policy.tenant.timezone}; cards go to channel {slack.channel}"
    )
    if slack.fallback_channel is None:
        return f"{told}."
    return f"{told}, and to {slack.fallback_channel} where a card's own cannot be used."


def _progress(style: ProgressStyle) -> str:
    told = "Whoever asked for a run sees there what it does, step by step"
    match style:
        case ProgressStyle.PLAIN:
            return f"{told}."
        case ProgressStyle.PLAN:
            return f"{told}, as a plan where Slack can show one."
        case _:
            assert_never(style)


def _people(policy: Policy) -> Iterator[str]:
    people, quorum = policy.people, policy.approval.quorum
    everyone = people.requesters == "everyone"
    asking = "Every full member of the workspace" if everyone else _named(people.requesters)
    yield f"{asking} may ask."
    if people.agents:
        yield f"Bots that may ask and never decide: {_named(people.agents)}."
    needed = "One of them has" if quorum == 1 else f"{quorum} of them have"
    yield f"{_named(people.approvers)} may decide. {needed} to approve."
    editors = "Whoever may decide" if people.editors is None else _named(people.editors)
    yield f"{editors} may edit what is proposed, and then does not approve it."
    yield f"{_named(people.operators)} may give and revoke roles in Slack."


def _roles(policy: Policy) -> Iterator[str]:
    for name, role in policy.roles.items():
        nobody = "" if role.members else ", unless a grant gives it to somebody"
        yield f"Role {name}: {_named(role.members)}{nobody}."


def _deciding(approval: ApprovalSection) -> Iterator[str]:
    yield (
        f"There is {duration(approval.decide_within_seconds)} to decide, from when the card is "
        f"shown, and {duration(approval.use_within_seconds)} to carry out what was approved; after "
        "either nothing is done."
    )
    if approval.remind_after_seconds:
        after = listing([duration(s) for s in sorted(approval.remind_after_seconds)])
        yield f"Whoever may decide is reminded after {after}."
    if approval.escalate_after_seconds is not None:
        after = duration(approval.escalate_after_seconds)
        yield f"After {after} it is put to others as well: {_named(approval.escalate_to)}."
    match approval.when_time_is_over:
        case WhenTimeIsOver.TELL_AGENT:
            yield "When the time to decide is over the agent is told, and its run goes on."
        case WhenTimeIsOver.STOP_RUN:
            yield "When the time to decide is over the run is stopped."
        case _:
            assert_never(approval.when_time_is_over)
    if approval.step_up:
        yield "Every approval needs a second factor."


def _rules(policy: Policy) -> Iterator[str]:
    for rule in policy.rules:
        yield rule_words(rule, policy.email)
    if all(rule.quorum > 0 for rule in policy.rules):
        yield "No rule lets anything be done without an approval."


def _signature(signature: str) -> str:
    lines = signature.strip().splitlines()
    if not lines:
        return "They end without a signature."
    return f"They end with the signature {' / '.join(one_line(text, 200) for text in lines)!r}."


def _named(named: Sequence[str]) -> str:
    told = ", ".join(who_words(who) for who in named) or "nobody"
    return f"{told[0].upper()}{told[1:]}"


def mail_not_sent_words(then: WhenMailIsNotSent) -> str:
    """Tell what follows a close whose email was proved not sent."""
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
