"""T4: everything is checked again; a first objection means that nothing was done and says why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from executor.domain.transition import Refused
from executor.engine.desk import close_ticket, reopen_ticket
from executor.engine.opening import LostLease, NotOpened, Opened, PutOff
from executor.engine.people import wanted
from executor.engine.revalidation import CheckName
from executor.engine.setup import activate_policy
from tests.support.fake_mail import not_applied
from tests.support.forcing import force_operation
from tests.support.office import OTTO, RENE, RIKO, SAM, TENANT, Office, closing, policy

Change = Callable[[Office], Awaitable[object]]


def _people(**people: list[str]) -> Change:
    everyone = {"requesters": ["U0REQUESTER"], "approvers": ["U0REVIEWER", "U0SECOND"]}

    async def change(office: Office) -> None:
        await activate_policy(office.engine, policy(people=everyone | people))

    return change


def _facts(who: str, **facts: bool | str) -> Change:
    people = {"approver": RENE, "requester": RIKO}

    async def change(office: Office) -> None:
        await office.look_at(people[who], **facts)

    return change


async def _stricter_quorum(office: Office) -> None:
    await activate_policy(office.engine, policy(approval={"quorum": 2}))


async def _customer_writes(office: Office) -> None:
    await office.customer_writes()


async def _closed_by_hand(office: Office) -> None:
    await close_ticket(office.database, TENANT, "4101", author="Ann")


async def _closed_and_reopened(office: Office) -> None:
    await _closed_by_hand(office)
    await reopen_ticket(office.database, TENANT, "4101", author="Ann")


async def _another_account(office: Office) -> None:
    office.mail.provider = "smtp:elsewhere"


async def _time_to_use_over(office: Office) -> None:
    await office.later(hours=2)


async def _approver_asks_for_the_same(office: Office) -> None:
    await activate_policy(office.engine, policy(people={
        "requesters": ["U0REQUESTER", "U0REVIEWER"], "approvers": ["U0REVIEWER", "U0SECOND"],
    }))  # fmt: skip
    run_id = await office.start_run(requester=RENE)
    await office.ask(run_id, await office.claim_run(run_id), closing())


async def _an_earlier_one_turns_out_to_have_succeeded(office: Office) -> None:
    claimed = await office.claimed("4102")
    other = claimed.claim.key[1]
    for target in ("executing", "failed", "succeeded"):
        await force_operation(office, other, target)
    async with office.database.transaction() as conn:
        await conn.execute(
            text("UPDATE operations SET intent_key = 'close:builtin:4101:1' WHERE id = :id"),
            {"id": other},
        )


OBJECTIONS: dict[str, tuple[Change, str, str]] = {
    "the approver may not approve any more": (
        _people(approvers=["U0SECOND"]), "not_permitted", "stale",
    ),
    "the requester may not ask any more": (
        _people(requesters=["U0SECOND"]), "not_permitted", "stale",
    ),
    "more votes are needed now": (_stricter_quorum, "not_permitted", "stale"),
    "the approver has asked for the same": (
        _approver_asks_for_the_same, "not_permitted", "stale",
    ),
    "the approver was deactivated": (_facts("approver", deleted=True), "identity_refused", "stale"),
    "the approver is a guest now": (_facts("approver", is_guest=True), "identity_refused", "stale"),
    "the approver is a bot": (_facts("approver", is_bot=True), "identity_refused", "stale"),
    "the approver is a stranger": (
        _facts("approver", is_stranger=True), "other_workspace", "stale",
    ),
    "the approver is of another team": (
        _facts("approver", team_id="T0OTHER"), "other_workspace", "stale",
    ),
    "the requester was deactivated": (
        _facts("requester", deleted=True), "identity_refused", "stale",
    ),
    "the ticket changed": (_customer_writes, "version_changed", "stale"),
    "the ticket was closed": (_closed_by_hand, "version_changed", "stale"),
    "the ticket was closed and opened again": (_closed_and_reopened, "version_changed", "stale"),
    "the mail would leave through another account": (
        _another_account, "provider_changed", "stale",
    ),
    "the time to use is over": (_time_to_use_over, "time_to_use_over", "expired"),
    "an earlier one of the key succeeded": (
        _an_earlier_one_turns_out_to_have_succeeded, "already_done", "stale",
    ),
}  # fmt: skip


SOMETIMES = {CheckName.REPEAT, CheckName.UNDOES, CheckName.LIMIT, CheckName.BUDGET}
ALWAYS = [n for n in CheckName if n not in SOMETIMES]
"""What every opening of a closing checks."""

CHECKED = {
    "not_permitted": "approvers",
    "identity_refused": "identities",
    "other_workspace": "identities",
    "version_changed": "ticket",
    "provider_changed": "provider",
    "time_to_use_over": "approval",
    "already_done": "once",
}


async def _checks(office: Office, machine: str, target: str) -> dict[str, str]:
    """Return what the journal tells of the checks, in their order, with one machine's move."""
    [(detail,)] = await office.rows(
        "SELECT detail FROM journal WHERE machine = :machine AND target = :target "
        "AND detail ? 'checks'",
        machine=machine,
        target=target,
    )
    found = detail["checks"]
    return {name.value: found[name.value] for name in CheckName if name.value in found}


@pytest.mark.parametrize("name", OBJECTIONS)
async def test_nothing_is_opened_when(office: Office, name: str) -> None:
    change, reason, status = OBJECTIONS[name]
    operation = await office.approved()
    await change(office)
    result = await office.open_one(await office.claim_operation(operation))
    assert isinstance(result, NotOpened)
    assert isinstance(result.reason, Refused)
    assert (result.reason.reason, await office.status(operation)) == (reason, status)
    assert await office.reason(operation) == reason
    approval = "SELECT status FROM approvals WHERE tenant_id = :t AND operation_id = :id"
    assert await office.value(approval, operation) == {"stale": "void"}.get(status, status)
    assert await office.rows("SELECT id FROM attempts") == []
    closed = "SELECT 1 FROM desk_events WHERE kind = 'closed' AND operation_id IS NOT NULL"
    assert await office.rows(closed) == []
    told = await _checks(office, "operation", status)
    check = "requester" if name.startswith("the requester may not") else CHECKED[reason]
    assert [*told] == [item.value for item in ALWAYS]
    assert next(item for item, found in told.items() if found != "held") == check
    assert told[check] == reason


async def test_an_opening_closes_consumes_and_records_in_one_commit(office: Office) -> None:
    claimed, opened = await office.opened()
    operation = claimed.claim.key[1]
    [row] = await office.rows(
        "SELECT o.status, p.status, a.status, a.epoch, t.status, t.version, o.closed_version "
        "FROM operations o JOIN approvals p ON p.operation_id = o.id "
        "JOIN attempts a ON a.operation_id = o.id JOIN desk_tickets t ON t.id = o.ticket_id"
    )
    assert row == (
        "executing", "consumed", "dispatched", claimed.claim.epoch, "closed", 3, 3,
    )  # fmt: skip
    assert opened.attempt.number == 1
    parts = await office.rows("SELECT status FROM effects ORDER BY position")
    assert parts == [("applied",), ("dispatched",)]
    assert isinstance(await office.open_one(claimed), NotOpened)
    assert await office.status(operation) == "executing"
    told = await _checks(office, "operation", "executing")
    assert told == {name.value: "held" for name in ALWAYS}


async def test_a_retry_tells_its_own_checks_with_its_attempt(office: Office) -> None:
    claimed, opened = await office.opened()
    await office.report(claimed, opened, not_applied(retryable=True))
    await office.later(seconds=5)
    again = await office.open_one(await office.claim_operation(claimed.claim.key[1]))
    assert isinstance(again, Opened)
    told = await _checks(office, "attempt", "dispatched")
    assert told == {name.value: "held" for name in ALWAYS}


async def test_an_old_look_at_a_person_puts_the_opening_off_and_asks_for_a_new_one(
    office: Office,
) -> None:
    claimed = await office.claimed()
    await office.later(seconds=61)
    await office.look_at(RIKO)
    async with office.database.transaction() as conn:
        await conn.execute(
            text("UPDATE identity_observations SET observed_at = :then WHERE principal = :who"),
            {"who": RENE, "then": datetime(2026, 1, 1, tzinfo=UTC)},
        )
    assert isinstance(await office.open_one(claimed), PutOff)
    assert (await wanted(office.engine, TENANT)).people == (RENE,)
    assert await office.status(claimed.claim.key[1]) == "approved"
    await office.look_at(RENE)
    assert (await wanted(office.engine, TENANT)).people == ()
    assert isinstance(await office.open_one(claimed), Opened)


@pytest.mark.parametrize("who", [SAM, OTTO])
async def test_only_the_people_whose_word_counts_have_to_be_looked_at(
    office: Office, who: str
) -> None:
    claimed = await office.claimed()
    async with office.database.transaction() as conn:
        await conn.execute(
            text("DELETE FROM identity_observations WHERE principal = :who"), {"who": who}
        )
    assert isinstance(await office.open_one(claimed), Opened)


async def test_a_worker_whose_lease_was_taken_over_opens_nothing(office: Office) -> None:
    stale = await office.claimed(owner="w1")
    await office.later(seconds=31)
    [fresh] = await office.claim_operations("w2")
    assert isinstance(await office.open_one(stale), LostLease)
    assert await office.rows("SELECT id FROM attempts") == []
    assert isinstance(await office.open_one(fresh), Opened)


async def test_an_equal_owner_with_an_old_epoch_opens_nothing(office: Office) -> None:
    stale = await office.claimed(owner="w1")
    await office.later(seconds=31)
    await office.claim_operations("w1")
    assert isinstance(await office.open_one(stale), LostLease)


async def test_many_are_opened_in_one_commit_each_for_its_own_reasons(office: Office) -> None:
    claims = [await office.claimed(ticket) for ticket in ("4101", "4102")]
    await office.customer_writes("4101")
    results = await office.open_all(*claims)
    assert [type(result) for result in results] == [NotOpened, Opened]
