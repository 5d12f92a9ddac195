"""Who a person is, as far as Slack's last word goes and for as long as it holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from executor.domain.identity import FRESH_FOR, Identity, objection
from executor.domain.transition import Reason, Refused

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def _seen(age: timedelta = timedelta(0), **facts: object) -> Identity:
    known: dict[str, object] = {
        "team_id": "T1",
        "deleted": False,
        "is_bot": False,
        "is_guest": False,
        "is_stranger": False,
    }
    return Identity(**{**known, **facts}, observed_at=NOW - age)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        (_seen(), None),
        (_seen(FRESH_FOR), None),
        (_seen(FRESH_FOR + timedelta(microseconds=1)), Reason.IDENTITY_UNKNOWN),
        (None, Reason.IDENTITY_UNKNOWN),
        (_seen(team_id="T2"), Reason.OTHER_WORKSPACE),
        (_seen(is_stranger=True), Reason.OTHER_WORKSPACE),
        (_seen(deleted=True), Reason.IDENTITY_REFUSED),
        (_seen(is_bot=True), Reason.IDENTITY_REFUSED),
        (_seen(is_guest=True), Reason.IDENTITY_REFUSED),
        (_seen(timedelta(hours=1), deleted=True), Reason.IDENTITY_UNKNOWN),
    ],
)
def test_only_a_full_member_seen_a_minute_ago_at_most_may_act(
    identity: Identity | None, reason: Reason | None
) -> None:
    found = objection(identity, "T1", now=NOW)
    assert (found.reason if isinstance(found, Refused) else None) is reason


def test_the_stored_facts_leave_out_their_time() -> None:
    assert set(_seen().facts()) == {"team_id", "deleted", "is_bot", "is_guest", "is_stranger"}
