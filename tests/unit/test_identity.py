"""Who a person is, as far as Slack's last word goes and for as long as it holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from executor.domain.identity import (
    FRESH_FOR,
    Identity,
    identity_of,
    nobody,
    objection,
    somebody_elsewhere,
)
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


def _on_grid(
    team_id: str = "T1", teams: tuple[str, ...] = ("T1", "T2"), **facts: object
) -> Identity:
    return _seen(**{"team_id": team_id, "enterprise_id": "E1", "teams": teams, **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        (_seen(), None),
        (_seen(FRESH_FOR), None),
        (_seen(FRESH_FOR + timedelta(microseconds=1)), Reason.IDENTITY_UNKNOWN),
        (None, Reason.IDENTITY_UNKNOWN),
        (_seen(team_id="T2"), Reason.OTHER_WORKSPACE),
        (_seen(team_id=""), Reason.OTHER_WORKSPACE),
        (_seen(is_stranger=True), Reason.OTHER_WORKSPACE),
        (somebody_elsewhere("T1", NOW), Reason.OTHER_WORKSPACE),
        (_seen(deleted=True), Reason.IDENTITY_REFUSED),
        (_seen(is_bot=True), Reason.IDENTITY_REFUSED),
        (_seen(is_guest=True), Reason.IDENTITY_REFUSED),
        (_seen(is_app_only=True), Reason.IDENTITY_REFUSED),
        (nobody("T1", NOW), Reason.IDENTITY_REFUSED),
        (_seen(timedelta(hours=1), deleted=True), Reason.IDENTITY_UNKNOWN),
    ],
)
def test_only_a_full_member_seen_a_minute_ago_at_most_may_act(
    identity: Identity | None, reason: Reason | None
) -> None:
    found = objection(identity, "T1", now=NOW)
    assert (found.reason if isinstance(found, Refused) else None) is reason


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        (_seen(is_bot=True), None),
        (_seen(), None),
        (_seen(is_bot=True, deleted=True), Reason.IDENTITY_REFUSED),
        (_seen(is_bot=True, is_app_only=True), Reason.IDENTITY_REFUSED),
        (_seen(is_bot=True, is_guest=True), Reason.IDENTITY_REFUSED),
        (_seen(is_bot=True, is_unknown=True), Reason.IDENTITY_REFUSED),
        (_seen(is_bot=True, team_id="T2"), Reason.OTHER_WORKSPACE),
        (_seen(FRESH_FOR * 2, is_bot=True), Reason.IDENTITY_UNKNOWN),
    ],
)
def test_an_agent_that_asks_may_be_a_bot_and_nothing_else(
    identity: Identity, reason: Reason | None
) -> None:
    found = objection(identity, "T1", now=NOW, agent=True)
    assert (found.reason if isinstance(found, Refused) else None) is reason


@pytest.mark.parametrize(
    ("identity", "of_workspace", "of_enterprise"),
    [
        (_on_grid(), True, True),
        (_on_grid(team_id="T2"), True, True),
        (_on_grid(team_id=""), True, True),
        (_on_grid(team_id="E1"), True, True),
        (_on_grid(teams=()), True, True),
        # A home that is not among one's workspaces is an old one.
        (_on_grid(teams=("T2",)), False, True),
        (_on_grid(team_id="T2", teams=()), False, True),
        (_on_grid(team_id="T8", teams=("T8", "T9"), enterprise_id="E9"), False, False),
        (_on_grid(is_stranger=True), False, False),
        (_seen(), True, False),
    ],
)
def test_on_grid_a_person_is_of_their_workspaces_and_of_their_enterprise(
    identity: Identity, of_workspace: bool, of_enterprise: bool
) -> None:
    assert (objection(identity, "T1", now=NOW) is None) is of_workspace
    assert (objection(identity, "E1", now=NOW) is None) is of_enterprise


def test_nobody_is_of_a_workspace_without_a_name() -> None:
    unnamed = _seen(team_id="")
    assert not unnamed.is_of("")
    assert not unnamed.agrees_with("")


@pytest.mark.parametrize("team", ["T1", "T2", "E1", "T3"])
def test_a_request_may_name_any_workspace_of_a_person_and_no_other(team: str) -> None:
    assert _on_grid().agrees_with(team) is (team != "T3")


def test_the_stored_facts_leave_out_their_time_and_are_read_back() -> None:
    seen = _on_grid(is_app_only=True, is_unknown=True)
    assert identity_of(seen.facts(), seen.observed_at, None) == seen
    assert not {"observed_at", "wanted_at"} & set(seen.facts())


def test_facts_that_an_older_release_did_not_store_count_against_the_person() -> None:
    old = {k: v for k, v in _seen().facts().items() if k not in ("is_app_only", "is_unknown")}
    assert objection(identity_of(old, NOW, None), "T1", now=NOW) is not None
