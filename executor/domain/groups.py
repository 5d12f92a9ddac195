"""Who is in a Slack user group, as far as Slack's last word goes and for as long as it holds.

Members are observed by the bot and stored, as people's own facts are. A group of which nobody knows
the members just now has none: whether that means *no* or *look again* is the reader's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from executor.domain.identity import FRESH_FOR
from executor.domain.ids import PrincipalId

Groups = Mapping[str, frozenset[PrincipalId]]
"""The members of groups that were looked at in time, by the group's id (``S…``)."""


@dataclass(frozen=True, slots=True)
class GroupObservation:
    """One observation of one group; ``wanted_at`` is since when somebody waits for a newer one.

    ``problem`` is Slack's code where it answered that there is nothing to tell: such a group has no
    members.
    """

    members: frozenset[PrincipalId]
    observed_at: datetime
    problem: str | None = None
    wanted_at: datetime | None = None


def fresh_groups(
    observations: Mapping[str, GroupObservation | None], now: datetime
) -> tuple[Groups, frozenset[str]]:
    """Part groups, by id, into the members of those seen in time and the ids of all others."""
    fresh = {
        group: seen.members
        for group, seen in observations.items()
        if seen is not None and now - seen.observed_at <= FRESH_FOR
    }
    return fresh, frozenset(observations) - frozenset(fresh)
