"""A user group counts for as long as Slack's last word about it holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from executor.domain.groups import GroupObservation, fresh_groups
from executor.domain.identity import FRESH_FOR
from executor.domain.ids import slack_principal

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
RENE = slack_principal("T1", "U0RENE")


def test_groups_seen_a_minute_ago_at_most_have_members_and_others_have_to_be_looked_at() -> None:
    fresh, stale = fresh_groups(
        {
            "S1": GroupObservation(frozenset({RENE}), NOW - FRESH_FOR),
            "S2": GroupObservation(frozenset({RENE}), NOW - FRESH_FOR - timedelta(microseconds=1)),
            "S3": None,
            "S4": GroupObservation(frozenset(), NOW, "no_such_subteam"),
        },
        NOW,
    )
    assert fresh == {"S1": {RENE}, "S4": frozenset()}
    assert stale == {"S2", "S3"}
