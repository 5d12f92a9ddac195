"""How money stands is told to whom it concerns; what nobody knew is settled once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from executor.domain.budget import Settle, Void
from executor.domain.charge_name import charge_label, parse_charge
from executor.domain.ids import PrincipalId, TenantId, operator_principal, slack_principal
from executor.domain.raising import Scope
from executor.domain.transition import Reason, Refused
from executor.engine.accounts import Accounts, RunAccount, see_accounts, see_run
from executor.engine.budget import reserve
from executor.engine.claims import ClaimedRun
from executor.engine.failpoint import Commit, Side, point
from executor.engine.invoice import (
    Invoiced,
    KnownBefore,
    SettledNow,
    SettleResult,
    settle_invoiced,
)
from executor.engine.leases import run_keeper
from executor.engine.pausing import Paused, pause
from executor.engine.purse import Ask
from executor.engine.setup import activate_policy
from tests.support.failpoints import Away, Crashed, Trap
from tests.support.money import CENT, account_of, days_of, end_call, hold, lose
from tests.support.office import CHANNEL, OTTO, RENE, RIKO, SAM, TEAM, TENANT, Office, policy
from tests.support.waiting import another_pool

OLGA = operator_principal("Olga")
PEOPLE = {
    "requesters": ["U0REQUESTER", "U0OUTSIDER"],
    "approvers": ["U0REVIEWER"],
    "operators": ["U0SECOND"],
}


async def say(
    office: Office,
    charge: str,
    microusd: int = CENT,
    *,
    by: PrincipalId = OLGA,
    tenant: TenantId = TENANT,
    note: str = "invoice 4711",
) -> SettleResult:
    name = parse_charge(charge)
    assert name is not None
    return await settle_invoiced(office.engine, tenant, by, Invoiced(name, microusd, note))


async def see(office: Office, by: PrincipalId = OLGA) -> Accounts:
    found = await see_accounts(office.engine, TENANT, by)
    assert isinstance(found, Accounts), found
    return found


async def paused_run(office: Office) -> ClaimedRun:
    """Pause a run that may cost a dime, of which a nickel is held for a call of unknown cost."""
    limits = {"run_microusd": 10 * CENT}
    await activate_policy(office.engine, policy(people=PEOPLE, budget=limits))
    claimed = await office.claim_run(await office.start_run())
    await lose(office.engine, claimed, 5 * CENT)
    [refused] = await reserve(
        office.engine, [Ask(claimed.key, claimed.lease.epoch, "model:test", 6 * CENT, 60.0)]
    )
    assert isinstance(refused, Refused)
    keeper = run_keeper(office.engine, claimed.key, claimed.lease)
    assert await pause(office.engine, claimed.key, keeper, refused) is Paused.PAUSED
    return claimed


@pytest.fixture
async def at_work(office: Office) -> Office:
    """An office whose only operator is Sam."""
    await activate_policy(office.engine, policy(people=PEOPLE))
    return office


async def test_b174_a_late_report_is_booked_once_on_the_day_of_its_call(office: Office) -> None:
    claimed = await office.claim_run(await office.start_run())
    lost = await lose(office.engine, claimed, 5 * CENT)
    again = await hold(office.engine, claimed, 5 * CENT)
    await end_call(office.engine, claimed, again, Settle(2 * CENT))
    await office.cancel(claimed.key[1])
    await office.later(hours=30)
    assert (await see(office)).today.account.held_microusd == 0
    result = await say(office, lost, 3 * CENT)
    assert isinstance(result, SettledNow)
    assert await account_of(office, claimed.key[1]) == (5 * CENT, 0, 0)
    assert await days_of(office) == [(5 * CENT, 0)]
    assert isinstance(await say(office, lost, 3 * CENT), KnownBefore)
    assert await days_of(office) == [(5 * CENT, 0)]


async def test_a_second_word_changes_nothing_and_is_told_of_the_first(office: Office) -> None:
    claimed = await office.claim_run(await office.start_run())
    lost = await lose(office.engine, claimed, 5 * CENT)
    assert isinstance(await say(office, lost, CENT), SettledNow)
    second = await say(office, lost, 4 * CENT, by=operator_principal("Ada"), note="another")
    assert isinstance(second, KnownBefore)
    assert (second.charge.actual_microusd, second.end.by) == (CENT, OLGA)
    assert second.end.note == "invoice 4711"
    assert await account_of(office, claimed.key[1]) == (CENT, 0, 0)
    moves = await office.rows(
        "SELECT actor, detail ->> 'note', detail ->> 'spent_microusd' FROM journal "
        "WHERE machine = 'reservation' AND target = 'settled'"
    )
    assert moves == [(OLGA, "invoice 4711", str(CENT))]


async def test_of_two_words_at_once_at_two_processes_one_counts(
    office: Office, database_url: str
) -> None:
    claimed = await office.claim_run(await office.start_run())
    lost = await lose(office.engine, claimed, 9 * CENT)
    async with another_pool(database_url) as pool:
        offices = [office, office.colleague(pool)]
        results = await asyncio.gather(
            *(say(offices[n % 2], lost, (n + 1) * CENT) for n in range(6))
        )
    [settled] = [r for r in results if isinstance(r, SettledNow)]
    before = [r for r in results if isinstance(r, KnownBefore)]
    assert {r.charge.actual_microusd for r in before} == {settled.actual_microusd}
    assert len(before) == 5
    assert await account_of(office, claimed.key[1]) == (settled.actual_microusd, 0, 0)


async def test_more_than_was_held_is_charged_in_full_and_nothing_is_an_amount(
    office: Office,
) -> None:
    claimed = await office.claim_run(await office.start_run())
    dear, free = [await lose(office.engine, claimed, 5 * CENT) for _ in range(2)]
    assert isinstance(await say(office, dear, 7 * CENT), SettledNow)
    assert isinstance(await say(office, free, 0), SettledNow)
    assert await account_of(office, claimed.key[1]) == (7 * CENT, 0, 0)
    assert await office.rows("SELECT status FROM reservations") == [("settled",)] * 2


@pytest.mark.parametrize("side", Side)
async def test_after_a_crash_at_the_commit_the_same_word_settles_it_once(
    office: Office, side: Side
) -> None:
    claimed = await office.claim_run(await office.start_run())
    lost = await lose(office.engine, claimed, 5 * CENT)
    crashing = office.colleague(failpoints=Trap(point(Commit.SETTLE, side)))
    with pytest.raises(Crashed):
        await say(crashing, lost, CENT)
    again = await say(office, lost, CENT)
    assert isinstance(again, SettledNow if side is Side.BEFORE else KnownBefore)
    assert await account_of(office, claimed.key[1]) == (CENT, 0, 0)


async def test_what_is_under_way_or_known_is_not_settled_by_a_word(office: Office) -> None:
    claimed = await office.claim_run(await office.start_run())
    id_ = await hold(office.engine, claimed, 5 * CENT)
    refused = await say(office, charge_label(id_))
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.detail["status"]) == (Reason.CHARGE_NOT_UNKNOWN, "held")
    await end_call(office.engine, claimed, id_, Void())
    voided = await say(office, charge_label(id_))
    assert isinstance(voided, KnownBefore)
    assert voided.end.by == "executor"
    assert await account_of(office, claimed.key[1]) == (0, 0, 0)


async def test_a_name_that_two_charges_bear_settles_neither(office: Office) -> None:
    claimed = await office.claim_run(await office.start_run())
    mint = office.engine.mint
    tail = mint().hex[-8:]
    twin = replace(office.engine, mint=lambda: type(mint())(hex=mint().hex[:-8] + tail))
    office.engine = twin
    lost = [await lose(office.engine, claimed, 5 * CENT) for _ in range(2)]
    assert lost[0] == lost[1]
    refused = await say(office, lost[0])
    assert refused == Refused(Reason.CHARGE_NOT_FOUND, {"several": True})
    first, _ = (await see(office)).unknown
    assert isinstance(await say(office, first.id.hex), SettledNow)
    assert await account_of(office, claimed.key[1]) == (CENT, 5 * CENT, 5 * CENT)


async def test_only_who_operates_settles_and_a_try_stands_in_the_journal(at_work: Office) -> None:
    claimed = await at_work.claim_run(await at_work.start_run())
    lost = await lose(at_work.engine, claimed, 5 * CENT)
    for who in (RIKO, RENE, OTTO):
        assert await say(at_work, lost, by=who) == Refused(
            Reason.NOT_PERMITTED, {"missing": "settle_charge"}
        )
    # Who may not learns nothing of what there is.
    assert await say(at_work, "ch_00000000", by=RIKO) == await say(at_work, lost, by=RIKO)
    assert await account_of(at_work, claimed.key[1]) == (0, 5 * CENT, 5 * CENT)
    noted = await at_work.rows(
        "SELECT actor, detail ->> 'reason' FROM journal WHERE event = 'charge_refused'"
    )
    assert noted[:3] == [(who, "not_permitted") for who in (RIKO, RENE, OTTO)]
    assert isinstance(await say(at_work, lost, by=SAM), SettledNow)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"deleted": True}, Reason.IDENTITY_REFUSED),
        ({"is_guest": True}, Reason.IDENTITY_REFUSED),
        ({"is_bot": True}, Reason.IDENTITY_REFUSED),
        ({"is_stranger": True}, Reason.OTHER_WORKSPACE),
        ({"team_id": "T0OTHER"}, Reason.OTHER_WORKSPACE),
    ],
)
async def test_an_operator_by_the_policy_alone_neither_sees_nor_settles(
    at_work: Office, facts: dict[str, bool | str], reason: Reason
) -> None:
    claimed = await at_work.claim_run(await at_work.start_run())
    lost = await lose(at_work.engine, claimed, 5 * CENT)
    await at_work.look_at(SAM, **facts)
    for result in (
        await say(at_work, lost, by=SAM),
        await see_accounts(at_work.engine, TENANT, SAM),
        await see_run(at_work.engine, TENANT, SAM, 1),
    ):
        assert isinstance(result, Refused)
        assert result.reason is reason
    assert await account_of(at_work, claimed.key[1]) == (0, 5 * CENT, 5 * CENT)


async def test_nobody_acts_on_an_old_look_at_who_they_are(at_work: Office) -> None:
    claimed = await at_work.claim_run(await at_work.start_run())
    lost = await lose(at_work.engine, claimed, 5 * CENT)
    await at_work.later_unseen(seconds=61)
    refused = await say(at_work, lost, by=SAM)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.IDENTITY_UNKNOWN
    assert isinstance(await see_accounts(at_work.engine, TENANT, SAM), Refused)


async def test_people_see_the_day_and_their_own_runs_and_operators_all(at_work: Office) -> None:
    mine = await at_work.claim_run(await at_work.start_run(requester=RIKO))
    theirs = await at_work.claim_run(await at_work.start_run(requester=OTTO))
    for claimed in (mine, theirs):
        await lose(at_work.engine, claimed, 5 * CENT)
    known = await hold(at_work.engine, mine, 4 * CENT)
    await end_call(at_work.engine, mine, known, Settle(CENT))
    for who, numbers in ((RIKO, [1]), (OTTO, [2]), (RENE, []), (SAM, [2, 1]), (OLGA, [2, 1])):
        found = await see(at_work, who)
        assert [run.number for run in found.runs] == numbers
        assert sorted(one.run for one in found.unknown) == sorted(numbers)
        today = found.today.account
        assert (today.spent_microusd, today.held_microusd) == (CENT, 10 * CENT)
        assert today.unknown_microusd == 10 * CENT
    own = await see_run(at_work.engine, TENANT, RIKO, 1)
    assert isinstance(own, RunAccount)
    assert (own.account.spent_microusd, own.account.unknown_microusd) == (CENT, 5 * CENT)
    assert await see_run(at_work.engine, TENANT, RIKO, 2) == Refused(
        Reason.NOT_PERMITTED, {"missing": "see_money"}
    )
    assert isinstance(await see_run(at_work.engine, TENANT, SAM, 2), RunAccount)
    assert await see_run(at_work.engine, TENANT, SAM, 99) == Refused(Reason.RUN_UNKNOWN)


async def test_who_may_neither_ask_nor_decide_sees_no_money(office: Office) -> None:
    people = {"requesters": ["U0REQUESTER"], "approvers": ["U0REVIEWER"]}
    await activate_policy(office.engine, policy(people=people))
    refused = Refused(Reason.NOT_PERMITTED, {"missing": "see_money"})
    assert await see_accounts(office.engine, TENANT, OTTO) == refused
    assert await see_run(office.engine, TENANT, OTTO, 1) == refused


async def test_another_tenants_money_is_neither_seen_nor_settled(office: Office) -> None:
    claimed = await office.claim_run(await office.start_run())
    lost = await lose(office.engine, claimed, 5 * CENT)
    other = TenantId("T0OTHER")
    await activate_policy(office.engine, policy(slack={"team": other, "channel": CHANNEL}))
    assert await say(office, lost, tenant=other) == Refused(
        Reason.CHARGE_NOT_FOUND, {"several": False}
    )
    found = await see_accounts(office.engine, other, OLGA)
    assert isinstance(found, Accounts)
    assert (list(found.runs), list(found.unknown)) == ([], [])
    assert (found.today.account.held_microusd, found.today.account.spent_microusd) == (0, 0)
    assert await see_run(office.engine, other, OLGA, 1) == Refused(Reason.RUN_UNKNOWN)
    assert isinstance(await see_accounts(office.engine, other, SAM), Refused)
    stranger = slack_principal(TEAM, "U0NEVERSEEN")
    assert isinstance(await see_accounts(office.engine, TENANT, stranger), Refused)


async def test_the_day_is_the_tenants_and_says_when_it_renews(office: Office) -> None:
    amsterdam = policy(tenant={"timezone": "Europe/Amsterdam"}, budget={"day_microusd": 7 * CENT})
    await activate_policy(office.engine, amsterdam)
    found = await see(office)
    local = found.today.renews_at.astimezone(found.zone)
    assert (local.hour, local.minute, found.zone.key) == (0, 0, "Europe/Amsterdam")
    assert (local.date() - found.today.day).days == 1
    assert found.today.account.left_microusd == 7 * CENT


async def test_a_settlement_that_frees_room_lets_the_paused_run_go_on(office: Office) -> None:
    claimed = await paused_run(office)
    [run] = (await see(office)).runs
    assert (run.scope, run.needed_microusd, run.account.left_microusd) == (
        Scope.RUN,
        6 * CENT,
        5 * CENT,
    )
    [one] = (await see(office)).unknown
    assert isinstance(await say(office, charge_label(one.id), 5 * CENT), SettledNow)
    assert await office.claim_run_if_any("w2") == [], "there still is no room for its next call"
    assert await account_of(office, claimed.key[1]) == (5 * CENT, 0, 0)


async def test_only_with_room_a_paused_run_is_due_again(office: Office) -> None:
    claimed = await paused_run(office)
    [one] = (await see(office)).unknown
    assert isinstance(await say(office, charge_label(one.id), 4 * CENT), SettledNow)
    [again] = await office.claim_run_if_any("w2")
    assert again.key == claimed.key


async def test_what_is_settled_stays_so_when_the_paused_runs_cannot_be_woken(
    office: Office,
) -> None:
    claimed = await paused_run(office)
    [one] = (await see(office)).unknown
    away = Away(point(Commit.RESUME, Side.BEFORE))
    result = await say(office.colleague(failpoints=away), charge_label(one.id), CENT)
    assert isinstance(result, SettledNow)
    assert away.reached
    assert await account_of(office, claimed.key[1]) == (CENT, 0, 0)
