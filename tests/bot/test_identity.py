"""What Slack says becomes an observation; a flag that is missing counts against the person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.identity import identity_from
from bot.sandbox.directory_methods import user_json
from bot.sandbox.faults import Fault
from bot.sandbox.seed import users
from executor.domain.identity import objection
from executor.domain.ids import slack_principal
from executor.store.people import want_identities
from tests.support.bot_harness import REVIEWER, Harness

NOW = datetime(2026, 3, 2, tzinfo=UTC)
TEAM = "TSIGNOFF"


def why(user: dict[str, Any]) -> str | None:
    refused = objection(identity_from(user, NOW), TEAM, now=NOW)
    return None if refused is None else str(refused.detail.get("is") or refused.reason.value)


def test_each_kind_of_account_is_told_apart() -> None:
    seen = {user.id: why(user_json(user)) for user in users()}
    assert seen == {
        "U0REQUESTER": None,
        "U0REVIEWER": None,
        "U0SECOND": None,
        "U0OUTSIDER": "other_workspace",
        "U0GUEST": "guest",
        "U0SIGNOFF": "bot",
        "U0AGENT": "bot",
    }


@pytest.mark.parametrize(
    "flag", ["deleted", "is_bot", "is_restricted", "is_ultra_restricted", "team_id"]
)
def test_a_flag_that_is_missing_counts_against_the_person(flag: str) -> None:
    user = {k: v for k, v in user_json(users()[1]).items() if k != flag}
    assert why(user) is not None


def test_slacks_own_bot_is_a_bot_whatever_its_flags_say() -> None:
    assert why({**user_json(users()[1]), "id": "USLACKBOT"}) == "bot"


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url, worker=False) as harness:
        yield harness


async def test_whoever_is_waited_for_is_looked_at_again_until_slack_answers(h: Harness) -> None:
    who = slack_principal(TEAM, REVIEWER)
    h.slack.faults.add("users.info", fault=Fault.ERROR_500_BEFORE_COMMIT, times=1)
    async with h.database.transaction() as conn:
        await want_identities(conn, [(h.policy.tenant_id, who)], NOW)

    async def observed() -> int:
        count: int = await h.value(
            "SELECT count(*) FROM identity_observations WHERE wanted_at IS NULL"
        )
        return count

    await h.until(observed, lambda n: n == 1)
    assert len(h.slack.record.calls("users.info")) == 2


async def test_an_observation_is_as_old_as_the_database_says_whatever_this_host_believes(
    h: Harness,
) -> None:
    await h.move_time(timedelta(days=3))
    await h.start_run("close 4101", by=REVIEWER)
    age = await h.value("SELECT signoff_clock() - observed_at FROM identity_observations")
    assert timedelta() <= age < timedelta(minutes=1)
