"""What was seen of people and groups: the newest counts, and nothing from before a change."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from executor.domain.groups import GroupObservation
from executor.domain.identity import FRESH_FOR, Identity, nobody
from executor.domain.ids import PrincipalId, TenantId, slack_principal
from executor.store import clock, people
from executor.store.connection import Connection
from executor.store.database import Database
from tests.support.office import RENE, RIKO, TENANT, Office

GROUP = "S0REVIEWERS"
OTHER = TenantId("TOTHER")


@pytest.fixture
async def office(database: Database) -> Office:
    return await Office.open(database)


def member(seen_at: datetime) -> Identity:
    return Identity(TENANT, False, False, False, False, seen_at)


async def identity_of(conn: Connection, who: PrincipalId = RENE) -> Identity | None:
    return (await people.read_identities(conn, [(TENANT, who)])).get((TENANT, who))


async def group(conn: Connection) -> GroupObservation | None:
    return (await people.read_groups(conn, [(TENANT, GROUP)])).get((TENANT, GROUP))


async def test_an_older_look_that_is_told_later_changes_nothing(office: Office) -> None:
    async with office.database.transaction() as conn:
        now = await clock.now(conn)
        before = now - timedelta(seconds=3)
        await people.put_identity(conn, TENANT, RENE, nobody(TENANT, now))
        await people.put_identity(conn, TENANT, RENE, member(before))
        assert await identity_of(conn) == nobody(TENANT, now)
        await people.put_group(conn, TENANT, GROUP, GroupObservation(frozenset(), now, "gone"))
        await people.put_group(conn, TENANT, GROUP, GroupObservation(frozenset({RENE}), before))
        assert await group(conn) == GroupObservation(frozenset(), now, "gone")


async def test_a_look_from_before_a_change_counts_for_nothing_and_is_still_wanted(
    office: Office,
) -> None:
    async with office.database.transaction() as conn:
        asked_at = await clock.now(conn)
        await people.put_identity(conn, TENANT, RENE, member(asked_at))
        await people.put_group(conn, TENANT, GROUP, GroupObservation(frozenset({RENE}), asked_at))
        changed_at = await clock.now(conn)
        await people.outdate(conn, TENANT, [RENE], [GROUP], changed_at, changed_at - FRESH_FOR)
        assert (await identity_of(conn), await group(conn)) == (None, None)
        # A look that had begun before the change is no news of it.
        between = asked_at + (changed_at - asked_at) / 2
        await people.put_identity(conn, TENANT, RENE, member(between))
        await people.put_group(conn, TENANT, GROUP, GroupObservation(frozenset({RENE}), between))
        assert (await identity_of(conn), await group(conn)) == (None, None)
        assert await people.wanted_identities(conn, TENANT, 9) == [RENE]
        assert await people.wanted_groups(conn, TENANT, 9) == [GROUP]
        later = await clock.now(conn)
        await people.put_identity(conn, TENANT, RENE, member(later))
        await people.put_group(conn, TENANT, GROUP, GroupObservation(frozenset(), later))
        assert await identity_of(conn) == member(later)
        assert await group(conn) == GroupObservation(frozenset(), later)
        assert await people.wanted_identities(conn, TENANT, 9) == []
        assert await people.wanted_groups(conn, TENANT, 9) == []


async def test_a_change_of_somebody_whom_nobody_believes_any_more_asks_for_no_look(
    office: Office,
) -> None:
    async with office.database.transaction() as conn:
        now = await clock.now(conn)
        stranger = slack_principal(TENANT, "U0NEVERSEEN")
        await people.outdate(conn, TENANT, [RIKO, stranger], [GROUP], now, now)
        assert await people.wanted_identities(conn, TENANT, 9) == []
        assert await people.wanted_groups(conn, TENANT, 9) == []
        assert await identity_of(conn, RIKO) is None


async def test_what_is_wanted_is_listed_for_one_tenant_and_the_oldest_first(
    office: Office,
) -> None:
    async with office.database.transaction() as conn:
        now = await clock.now(conn)
        await people.want_groups(conn, [(TENANT, "S2")], now)
        await people.want_groups(conn, [(TENANT, "S1"), (TENANT, "S2")], now + timedelta(seconds=1))
        assert await people.wanted_groups(conn, TENANT, 9) == ["S2", "S1"]
        assert await people.wanted_groups(conn, TENANT, 1) == ["S2"]
        assert await people.wanted_groups(conn, OTHER, 9) == []
        await people.want_identities(conn, [(TENANT, RENE)], now)
        assert await people.wanted_identities(conn, OTHER, 9) == []


async def test_one_look_at_a_group_is_made_in_a_while_and_none_before_slack_allows_it(
    office: Office,
) -> None:
    async def claimed(after: timedelta = timedelta(0)) -> bool:
        await office.later_unseen(seconds=after.total_seconds())
        async with office.database.transaction() as conn:
            return await people.claim_group_look(conn, TENANT, GROUP, 5.0) is not None

    assert [await claimed(), await claimed(), await claimed(timedelta(seconds=5))] == [
        True,
        False,
        True,
    ]
    async with office.database.transaction() as conn:
        await people.note_silence_about_group(conn, TENANT, GROUP, "ratelimited", 30.0)
        assert await people.group_problems(conn, TENANT, [GROUP]) == {"ratelimited": 1}
        assert await people.group_problems(conn, TENANT, ["S0OTHER"]) == {}
    assert not await claimed(timedelta(seconds=29))
    assert await claimed(timedelta(seconds=2))
