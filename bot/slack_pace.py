"""How fast Slack may be asked, and a little slower where it does not say.

Source: docs.slack.dev, rate limits (2026). ``chat.postMessage``: one a second and channel, "several
hundred" a minute and workspace; of a faster burst Slack says that messages may not be stored or
displayed, so there is none. ``chat.update`` and ``conversations.history``: Tier 3, 50 a minute and
workspace, some bursting.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from executor.domain.pace import Pace
from executor.domain.policy import Policy
from executor.engine.card_turns import Delivery, Paces, Route

_TIER_3 = timedelta(seconds=1.2)
_A_POST = timedelta(seconds=1.1)
"""A little more than a second, for one call may take longer on its way than the next."""

SLACK_PACES = Paces(
    post=Pace(_A_POST),
    posts=Pace(timedelta(seconds=0.25), at_once=20),
    updates_decided=Pace(_TIER_3, at_once=15),
    updates=Pace(_TIER_3, at_once=5),
    searches=Pace(_TIER_3, at_once=5),
    rests=timedelta(seconds=2),
)


def slack_paces(times: float) -> Paces:
    """Ask so many times as fast as Slack documents: of a sandbox, or where Slack allows more."""

    def faster(pace: Pace) -> Pace:
        return replace(pace, every=pace.every / times)

    return replace(
        SLACK_PACES,
        post=faster(SLACK_PACES.post),
        posts=faster(SLACK_PACES.posts),
        updates_decided=faster(SLACK_PACES.updates_decided),
        updates=faster(SLACK_PACES.updates),
        searches=faster(SLACK_PACES.searches),
        rests=SLACK_PACES.rests / times,
    )


def delivery_of(policy: Policy, paces: Paces = SLACK_PACES) -> Delivery:
    """Say how the cards of a policy's workspace are delivered."""
    route = Route(policy.slack.channel, policy.slack.fallback_channel)
    return Delivery(policy.tenant_id, route, paces)
