"""The policy's rules at work: whose votes an operation needs, at its click and at its opening."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import text

from executor.domain.groups import GroupObservation
from executor.domain.ids import OperationId, PrincipalId
from executor.domain.transition import Reason, Refused
from executor.engine.card_record import OperationRecord
from executor.engine.click import Recorded
from executor.engine.converging import Accepted
from executor.engine.opening import NotOpened, Opened, PutOff
from executor.engine.presenting import operation_record
from executor.engine.setup import activate_policy
from executor.store import clock
from executor.store.people import put_group
from tests.support.fake_mail import applied
from tests.support.office import OTTO, RENE, SAM, TENANT, Office, closing, policy

OUTSIDE = {"name": "to strangers", "when": ["outside_recipient"], "approvers": ["role:leads"]}
LEADS = {"leads": {"members": ["U0OUTSIDER"]}}


async def _proposed(office: Office, **changes: object) -> OperationId:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    ticket = str(changes.pop("ticket", "4101"))
    [result] = await office.ask(run_id, claimed, closing(ticket, **changes))
    assert isinstance(result, Accepted), result
    await office.show()
    return result.operation_id


async def _votes(office: Office, operation: OperationId, *people: PrincipalId) -> list[int]:
    """Let people approve and say how many votes were lacking after each."""
    lacking = []
    for who in people:
        result = await office.click(operation, who)
        assert isinstance(result, Recorded), (who, result)
        lacking.append(result.still_needed)
    return lacking


async def _opens(office: Office, operation: OperationId) -> bool:
    result = await office.open_one(await office.claim_operation(operation))
    assert isinstance(result, Opened | NotOpened), result
    return isinstance(result, Opened)


async def test_a_rule_that_matches_asks_for_its_own_people_beside_the_usual(
    office: Office,
) -> None:
    await activate_policy(office.engine, policy(roles=LEADS, rules=[OUTSIDE]))
    usual = await _proposed(office)
    assert isinstance(await office.click(usual, OTTO), Refused)
    assert await _votes(office, usual, RENE) == [0]


async def test_an_outside_recipient_needs_a_lead_as_well(office: Office) -> None:
    await activate_policy(office.engine, policy(roles=LEADS, rules=[OUTSIDE]))
    strange = await _proposed(office, to=["eve@elsewhere.example"])
    assert await _votes(office, strange, RENE, OTTO) == [1, 0]
    assert await _opens(office, strange)


async def test_one_person_may_count_for_both(office: Office) -> None:
    both = {"leads": {"members": ["U0REVIEWER"]}}
    await activate_policy(office.engine, policy(roles=both, rules=[OUTSIDE]))
    strange = await _proposed(office, to=["eve@elsewhere.example"])
    assert await _votes(office, strange, RENE) == [0]


async def test_where_no_rule_asks_for_a_person_the_policy_consents(office: Office) -> None:
    harmless = {"name": "all", "quorum": 0}
    await activate_policy(office.engine, policy(roles=LEADS, rules=[harmless, OUTSIDE]))
    operation = await _proposed(office)
    [(vote, who)] = await office.rows("SELECT vote, principal FROM decisions")
    assert (vote, who.partition(":")[0]) == ("approve", "policy")
    assert await _opens(office, operation)


async def test_a_rule_that_asks_wins_over_one_that_does_not(office: Office) -> None:
    harmless = {"name": "all", "quorum": 0}
    await activate_policy(office.engine, policy(roles=LEADS, rules=[harmless, OUTSIDE]))
    strange = await _proposed(office, to=["eve@elsewhere.example"])
    assert await office.rows("SELECT 1 FROM decisions") == []
    assert await _votes(office, strange, RENE, OTTO) == [1, 0]


async def test_the_policys_consent_is_void_once_people_are_asked(office: Office) -> None:
    await activate_policy(office.engine, policy(rules=[{"name": "all", "quorum": 0}]))
    operation = await _proposed(office)
    await activate_policy(office.engine, policy())
    assert not await _opens(office, operation)


async def test_a_rule_that_is_new_binds_what_waits_and_what_is_approved(office: Office) -> None:
    strange = await _proposed(office, to=["eve@elsewhere.example"])
    await activate_policy(office.engine, policy(roles=LEADS, rules=[OUTSIDE]))
    # What still waits is decided by the rules of now.
    assert await _votes(office, strange, RENE, OTTO) == [1, 0]
    assert await _opens(office, strange)


async def test_what_was_approved_before_a_stricter_rule_is_not_opened(office: Office) -> None:
    strange = await _proposed(office, to=["eve@elsewhere.example"])
    assert await _votes(office, strange, RENE) == [0]
    await activate_policy(office.engine, policy(roles=LEADS, rules=[OUTSIDE]))
    assert not await _opens(office, strange)
    assert await office.status(strange) == "stale"


async def test_a_shorter_time_to_use_binds_what_is_approved(office: Office) -> None:
    operation = await _proposed(office)
    assert await _votes(office, operation, RENE) == [0]
    await activate_policy(office.engine, policy(approval={"use_within_seconds": 60}))
    await office.later(seconds=61)
    assert not await _opens(office, operation)


async def test_what_needs_a_second_factor_is_not_decided_without_it(office: Office) -> None:
    risky = {"name": "links", "when": ["external_link"], "step_up": True}
    await activate_policy(office.engine, policy(rules=[risky]))
    operation = await _proposed(office, message="See https://evil.example/x")
    refused = await office.click(operation, RENE)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.SECOND_FACTOR_NEEDED
    assert await _votes_with_factor(office, operation)
    assert await _opens(office, operation)


async def _votes_with_factor(office: Office, operation: OperationId) -> bool:
    click = replace(await office.click_for(operation, RENE), second_factor=True)
    [result] = await office.decide(click)
    return isinstance(result, Recorded) and result.decided


async def test_a_second_factor_that_is_asked_for_later_voids_what_lacks_it(
    office: Office,
) -> None:
    operation = await _proposed(office)
    assert await _votes(office, operation, RENE) == [0]
    await activate_policy(office.engine, policy(approval={"step_up": True}))
    assert not await _opens(office, operation)


async def test_a_card_does_not_count_votes_that_lack_a_second_factor(office: Office) -> None:
    await activate_policy(office.engine, policy(approval={"quorum": 2}))
    operation = await _proposed(office)
    assert await _votes(office, operation, RENE) == [1]
    await activate_policy(office.engine, policy(approval={"quorum": 2, "step_up": True}))
    record = await operation_record(office.engine, TENANT, operation)
    assert isinstance(record, OperationRecord)
    assert [r.quorum for r in record.approval.lacking or ()] == [2]


async def test_whoever_was_written_to_before_is_no_first_contact(office: Office) -> None:
    rule = {"name": "first", "when": ["first_contact"], "approvers": ["U0OUTSIDER"]}
    await activate_policy(office.engine, policy(rules=[rule]))
    first = await _proposed(office)
    assert await _votes(office, first, SAM, OTTO) == [1, 0]
    claimed = await office.claim_operation(first)
    opened = await office.open_one(claimed)
    assert isinstance(opened, Opened)
    await office.report(claimed, opened, applied())
    second = await _proposed(office, ticket="4102")
    assert await _votes(office, second, RENE) == [0]


async def test_whoever_wrote_the_content_does_not_approve_it(office: Office) -> None:
    operation = await _proposed(office)
    async with office.database.transaction() as conn:
        await conn.execute(text("UPDATE operations SET editor = :who"), {"who": RENE})
    refused = await office.click(operation, RENE)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.OWN_EDIT
    assert await _votes(office, operation, SAM) == [0]


async def _group(office: Office, *members: PrincipalId) -> None:
    async with office.database.transaction() as conn:
        seen = GroupObservation(frozenset(members), await clock.now(conn))
        await put_group(conn, TENANT, "S0LEADS", seen)


async def test_members_of_a_user_group_decide_while_the_group_was_looked_at(
    office: Office,
) -> None:
    people = {"requesters": ["U0REQUESTER"], "approvers": ["group:S0LEADS"]}
    await activate_policy(office.engine, policy(people=people))
    operation = await _proposed(office)
    unseen = await office.click(operation, OTTO)
    assert isinstance(unseen, Refused)
    assert unseen.reason is Reason.IDENTITY_UNKNOWN
    await _group(office, SAM)
    outside = await office.click(operation, OTTO)
    assert isinstance(outside, Refused)
    assert outside.reason is Reason.NOT_PERMITTED
    await _group(office, SAM, OTTO)
    assert await _votes(office, operation, OTTO) == [0]
    # It is looked at once more before anything is opened; whoever left it counts no more.
    await office.later(seconds=61)
    claimed = await office.claim_operation(operation)
    assert isinstance(await office.open_one(claimed), PutOff)
    [(group,)] = await office.rows(
        "SELECT group_id FROM group_observations WHERE wanted_at IS NOT NULL"
    )
    assert group == "S0LEADS"
    await _group(office, SAM)
    await office.later(seconds=2)
    assert not await _opens(office, operation)
