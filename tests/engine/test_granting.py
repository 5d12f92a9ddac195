"""Grants: who may give and take them, and what a vote that rests on one is worth at the opening."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from executor.domain.approval import Vote
from executor.domain.grant import GrantStatus
from executor.domain.ids import OperationId, PrincipalId, operator_principal
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.click import ClickResult, Recorded
from executor.engine.granting import Given, TakenBack, Wish, give, list_grants, take_back
from executor.engine.opening import NotOpened, Opened
from executor.engine.setup import activate_policy
from executor.store import clock
from tests.support.office import OTTO, RENE, RIKO, SAM, TENANT, Office, policy

ADA = operator_principal("ada")
HOUR = timedelta(hours=1)


async def _now(office: Office) -> datetime:
    async with office.database.transaction() as conn:
        return await clock.now(conn)


async def _given(office: Office, wish: Wish, by: PrincipalId = ADA) -> int:
    result = await give(office.engine, TENANT, by, wish)
    assert isinstance(result, Given), result
    return result.number


def _reason(result: object) -> Reason | None:
    return result.reason if isinstance(result, Refused) else None


async def _opens(office: Office, operation: OperationId) -> bool:
    result = await office.open_one(await office.claim_operation(operation))
    assert isinstance(result, Opened | NotOpened), result
    return isinstance(result, Opened)


async def _refused(office: Office, operation: OperationId, who: PrincipalId) -> Reason | None:
    result: ClickResult = await office.click(operation, who)
    return _reason(result)


async def test_a_role_that_was_given_counts_until_it_is_taken_back(office: Office) -> None:
    operation = await office.proposed()
    assert await _refused(office, operation, OTTO) is Reason.NOT_PERMITTED
    number = await _given(office, Wish(OTTO, "approver"))
    assert isinstance(await office.click(operation, OTTO), Recorded)
    assert isinstance(await take_back(office.engine, TENANT, ADA, number), TakenBack)
    assert isinstance(await take_back(office.engine, TENANT, ADA, number), NoChange)
    assert not await _opens(office, operation)
    [line] = await list_grants(office.engine, TENANT, past=True)
    assert (line.grant.status, line.revoked_by) == (GrantStatus.REVOKED, ADA)
    assert await list_grants(office.engine, TENANT) == []


async def test_a_role_counts_from_its_start_to_its_end(office: Office) -> None:
    now = await _now(office)
    await _given(office, Wish(OTTO, "approver", starts_at=now + HOUR, ends_at=now + 2 * HOUR))
    operation = await office.proposed()
    assert await _refused(office, operation, OTTO) is Reason.NOT_PERMITTED
    await office.later(hours=1)
    assert isinstance(await office.click(operation, OTTO), Recorded)
    await office.later(hours=1)
    assert not await _opens(office, operation)


@pytest.mark.parametrize(
    ("resource", "counts"),
    [
        ("ticket:builtin:4101", True),
        ("ticket:builtin:4102", False),
        ("desk:builtin", True),
        ("desk:zendesk:acme", False),
        ("kind:close_ticket", True),
        ("kind:reopen_ticket", False),
    ],
)
async def test_a_role_is_about_its_resource_alone(
    office: Office, resource: str, counts: bool
) -> None:
    await _given(office, Wish(OTTO, "approver", resource))
    operation = await office.proposed()
    assert isinstance(await office.click(operation, OTTO), Recorded) is counts


async def test_a_role_that_was_passed_on_ends_with_its_givers_own(office: Office) -> None:
    until = await _now(office) + HOUR
    wish = Wish(OTTO, "approver", ends_at=until, on_behalf_of=RENE)
    await _given(office, wish, by=RENE)
    operation = await office.proposed()
    assert isinstance(await office.click(operation, OTTO), Recorded)
    [(behalf,)] = await office.rows("SELECT on_behalf_of FROM decisions")
    assert behalf == RENE
    people = {"requesters": ["U0REQUESTER"], "approvers": ["U0SECOND"]}
    await activate_policy(office.engine, policy(people=people))
    assert not await _opens(office, operation)


async def test_nobody_approves_on_behalf_of_whoever_asked(office: Office) -> None:
    until = await _now(office) + HOUR
    await _given(office, Wish(OTTO, "approver", ends_at=until, on_behalf_of=RIKO), by=RIKO)
    operation = await office.proposed()
    assert await _refused(office, operation, OTTO) is Reason.OWN_REQUEST


async def test_who_passed_it_on_and_who_has_it_count_once(office: Office) -> None:
    await activate_policy(office.engine, policy(approval={"quorum": 2}))
    until = await _now(office) + HOUR
    await _given(office, Wish(OTTO, "approver", ends_at=until, on_behalf_of=RENE), by=RENE)
    operation = await office.proposed()
    for who in (RENE, OTTO):
        result = await office.click(operation, who)
        assert isinstance(result, Recorded)
        assert (result.still_needed, result.decided) == (1, False)
    assert await office.click(operation, SAM) == Recorded(Vote.APPROVE, 0, decided=True)


async def test_only_an_operator_gives_what_is_not_their_own(office: Office) -> None:
    until = await _now(office) + HOUR
    for wish, by, why in (
        (Wish(OTTO, "approver"), RENE, Reason.NOT_PERMITTED),
        (Wish(OTTO, "operator", ends_at=until, on_behalf_of=RENE), RENE, Reason.NOT_PERMITTED),
        (Wish(OTTO, "approver", ends_at=until, on_behalf_of=SAM), RENE, Reason.NOT_PERMITTED),
        (Wish(OTTO, "approver", on_behalf_of=RENE), RENE, Reason.GRANT_INVALID),
        (Wish(OTTO, "approver", "everything"), ADA, Reason.GRANT_INVALID),
        (Wish(ADA, "approver"), ADA, Reason.GRANT_INVALID),
        (Wish(OTTO, "approver", ends_at=until - 2 * HOUR), ADA, Reason.GRANT_INVALID),
        (Wish(OTTO, "boss"), ADA, Reason.ROLE_UNKNOWN),
    ):
        assert _reason(await give(office.engine, TENANT, by, wish)) is why, wish
    await _given(office, Wish(RENE, "operator"))
    number = await _given(office, Wish(OTTO, "approver"), by=RENE)
    taken = await take_back(office.engine, TENANT, SAM, number)
    assert _reason(taken) is Reason.NOT_PERMITTED
    assert isinstance(await take_back(office.engine, TENANT, OTTO, number), TakenBack)
    unknown = await take_back(office.engine, TENANT, ADA, 4711)
    assert _reason(unknown) is Reason.GRANT_UNKNOWN


async def test_a_requester_by_grant_loses_what_waits_with_the_grant(office: Office) -> None:
    number = await _given(office, Wish(OTTO, "requester", "ticket:builtin:4101"))
    run_id = await office.start_run(requester=OTTO)
    claimed = await office.claim_run(run_id)
    operation = await office.propose(run_id, claimed)
    await office.show()
    assert isinstance(await office.click(operation), Recorded)
    await take_back(office.engine, TENANT, ADA, number)
    assert not await _opens(office, operation)
