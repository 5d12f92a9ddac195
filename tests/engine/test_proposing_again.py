"""What is out of date is proposed again for the ticket as it is now, at a person's word."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from executor.domain.approval import Vote
from executor.domain.ids import OperationId, PrincipalId, RunId
from executor.domain.payloads import JsonObject
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.click import NotConfirmed, Recorded
from executor.engine.desk import close_ticket
from executor.engine.failpoint import Commit, Side, point
from executor.engine.pressing import read_back
from executor.engine.replacement import Replaced
from executor.engine.setup import activate_policy
from executor.engine.waking import wake
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_mail import applied
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import OTTO, RENE, RIKO, SAM, TENANT, Office, closing, policy
from tests.support.outside import at_zendesk
from tests.support.replacing import (
    again_for,
    asked_again,
    edited,
    press_again,
    record_of,
)
from tests.support.waiting import another_pool
from tests.support.working import Working

READ = says("", calls("read_ticket", {"ticket_id": "4101"}))
ARGUMENTS: JsonObject = {
    "ticket_id": "4101",
    "language": "en",
    "subject": "Ticket 4101 closed",
    "message": "Your invoice is corrected.",
}
PROPOSE = says("", calls("propose_closing", ARGUMENTS))


def _refused(result: object, reason: Reason) -> Refused:
    assert isinstance(result, Refused), result
    assert result.reason is reason
    return result


async def _statuses(office: Office) -> list[str]:
    return [s for (s,) in await office.rows("SELECT status FROM operations ORDER BY number")]


async def _outdated(office: Office) -> OperationId:
    """Walk to a proposal whose ticket has moved on."""
    operation = await office.proposed()
    await office.customer_writes()
    return operation


async def _stale(office: Office) -> OperationId:
    """Walk to an approved operation that its opening found out of date."""
    claimed = await office.claimed()
    await office.customer_writes()
    await office.open_one(claimed)
    operation = claimed.claim.key[1]
    assert await office.status(operation) == "stale"
    return operation


async def _run(office: Office, run_id: RunId) -> tuple[object, ...]:
    [row] = await office.rows(
        "SELECT status, driven, requester, goal FROM runs WHERE id = :id", id=run_id
    )
    return row


async def test_what_waits_is_ended_as_out_of_date_and_the_same_waits_for_the_new_version(
    office: Office,
) -> None:
    operation = await _outdated(office)
    new = await asked_again(office, operation)
    assert await _statuses(office) == ["stale", "awaiting"]
    assert await office.reason(operation) == "version_changed"
    before, after = await record_of(office, operation), await record_of(office, new)
    assert (before.target.version, after.target.version) == (2, 3)
    assert before.email is not None
    assert after.email is not None
    for field in ("from", "to", "cc", "subject", "text"):
        assert after.email[field] == before.email[field]
    assert after.email["message_id"] != before.email["message_id"]
    assert before.successor is not None
    assert before.successor.number == after.number
    assert after.previous is not None
    assert after.previous.number == before.number
    assert await office.run_of(new) == await office.run_of(operation)


async def test_the_requester_stays_and_whoever_pressed_counts_as_one(office: Office) -> None:
    new = await asked_again(office, await _outdated(office), SAM)
    record = await record_of(office, new)
    assert (record.requester, record.asked_again_by, record.editor) == (RIKO, (SAM,), None)
    _refused(await office.click(new, SAM), Reason.OWN_REQUEST)
    _refused(await office.click(new, RIKO), Reason.OWN_REQUEST)
    assert isinstance(await office.click(new, RENE), Recorded)
    held = await office.claim_operation(new)
    await office.report(held, await office.open_one(held), applied())  # type: ignore[arg-type]
    assert await _statuses(office) == ["stale", "succeeded"]


async def test_the_run_waits_for_the_new_one_and_is_told_of_its_end_alone(office: Office) -> None:
    working = await Working.start(office, FakeModel([READ, PROPOSE, says("Done.")]))
    await working.drive()
    await office.show()
    [operation] = await working.operations()
    await office.customer_writes()
    new = await asked_again(office, operation)
    await wake(office.engine)
    assert not await working.due()
    await office.click(new, RENE, Vote.REJECT, "Too short.")
    await wake(office.engine)
    await working.drive()
    told = await working.told()
    assert [t.get("status") for t in told[1:]] == ["rejected"]
    assert await office.run_status(working.run_id) == "succeeded"


async def test_a_stale_one_whose_run_still_waits_goes_on_in_that_run(office: Office) -> None:
    working = await Working.start(office, FakeModel([READ, PROPOSE, says("Done.")]))
    await working.drive()
    await office.show()
    [operation] = await working.operations()
    await office.click(operation)
    held = await office.claim_operation(operation)
    await office.customer_writes()
    await office.open_one(held)
    assert await office.status(operation) == "stale"
    new = await asked_again(office, operation, SAM)
    assert await office.run_of(new) == working.run_id
    # The waker finds nobody who would have to be told of the one before.
    await wake(office.engine)
    assert not await working.due()
    assert (await working.operations())[-1] == new


async def test_one_whose_run_was_told_lives_in_a_run_that_nobody_drives(office: Office) -> None:
    operation = await _stale(office)
    run_id = await office.run_of(operation)
    await office.cancel(run_id)
    new = await asked_again(office, operation, SAM)
    other = await office.run_of(new)
    assert other != run_id
    assert await _run(office, other) == ("waiting", False, SAM, "close 4101")
    record = await record_of(office, new)
    assert (record.requester, record.asked_again_by) == (RIKO, (SAM,))
    _refused(await office.click(new, RIKO), Reason.OWN_REQUEST)
    await office.click(new, RENE)
    held = await office.claim_operation(new)
    await office.report(held, await office.open_one(held), applied())  # type: ignore[arg-type]
    await wake(office.engine)
    assert await _run(office, other) == ("succeeded", False, SAM, "close 4101")


async def test_a_run_that_was_told_and_waits_for_something_else_is_left_alone(
    office: Office,
) -> None:
    read = says(
        "", *(calls("read_ticket", {"ticket_id": t}, f"read_{t}") for t in ("4101", "4102"))
    )
    instead = says("", calls("propose_closing", {**ARGUMENTS, "ticket_id": "4102"}))
    working = await Working.start(office, FakeModel([read, PROPOSE, instead]))
    await working.drive()
    await office.show()
    [first] = await working.operations()
    await office.click(first)
    held = await office.claim_operation(first)
    await office.customer_writes()
    await office.open_one(held)
    await wake(office.engine)
    await working.drive()
    assert await office.run_status(working.run_id) == "waiting"
    new = await asked_again(office, first, SAM)
    assert await office.run_of(new) != working.run_id
    assert len(await working.operations()) == 2


async def test_a_run_that_nobody_drives_ends_with_a_rejection_as_well(office: Office) -> None:
    operation = await _stale(office)
    await office.cancel(await office.run_of(operation))
    new = await asked_again(office, operation, SAM)
    await office.click(new, RENE, Vote.REJECT, "No.")
    await wake(office.engine)
    assert (await _run(office, await office.run_of(new)))[0] == "succeeded"


async def test_a_second_press_answers_with_the_number_of_the_first_ones(office: Office) -> None:
    operation = await _outdated(office)
    first = await press_again(office, await again_for(office, operation))
    assert isinstance(first, Replaced)
    second = await press_again(office, await again_for(office, operation, SAM))
    assert second == replace(first, before=True)
    assert await _statuses(office) == ["stale", "awaiting"]
    answers = [a for (a,) in await office.rows("SELECT answer FROM notices ORDER BY created_at")]
    assert [(a["kind"], a["successor"]) for a in answers] == [("proposed_again", first.number)] * 2


async def test_of_two_presses_at_once_both_are_told_the_same_number(
    office: Office, database_url: str
) -> None:
    operation = await _outdated(office)
    one, other = await again_for(office, operation), await again_for(office, operation, SAM)
    async with another_pool(database_url) as pool:
        results = await asyncio.gather(
            press_again(office, one), press_again(office.colleague(pool), other)
        )
    numbers = {r.number for r in results if isinstance(r, Replaced)}
    assert len(numbers) == 1
    assert len(results) == 2
    assert await _statuses(office) == ["stale", "awaiting"]


async def test_the_same_signed_request_again_changes_nothing(office: Office) -> None:
    asked = await again_for(office, await _outdated(office))
    assert isinstance(await press_again(office, asked), Replaced)
    assert await press_again(office, asked) == NoChange()


async def test_what_a_person_wrote_stays_theirs_and_needs_people(office: Office) -> None:
    edited_one = await edited(office, await office.proposed(), RENE)
    await office.customer_writes()
    rules = [{"name": "routine", "quorum": 0}]
    await activate_policy(office.engine, policy(rules=rules))
    new = await asked_again(office, edited_one, SAM)
    assert await office.status(new) == "awaiting"
    assert (await record_of(office, new)).editor == RENE
    _refused(await office.click(new, RENE), Reason.OWN_EDIT)
    _refused(await office.click(new, SAM), Reason.OWN_REQUEST)


async def test_where_the_policy_asks_nobody_it_consents_again(office: Office) -> None:
    rules = [{"name": "routine", "quorum": 0}]
    operation = await _outdated(office)
    await activate_policy(office.engine, policy(rules=rules))
    new = await asked_again(office, operation)
    assert await office.status(new) == "approved"


async def test_a_ticket_that_has_not_moved_is_decided_on_its_card(office: Office) -> None:
    operation = await office.proposed()
    result = await press_again(office, await again_for(office, operation))
    _refused(result, Reason.NOT_OUT_OF_DATE)
    assert await _statuses(office) == ["awaiting"]


async def test_nothing_is_proposed_again_for_a_closed_ticket(office: Office) -> None:
    operation = await _outdated(office)
    await close_ticket(office.database, TENANT, "4101", author="Ann")
    _refused(await press_again(office, await again_for(office, operation)), Reason.TICKET_CLOSED)


async def test_what_another_run_proposes_meanwhile_is_not_doubled(office: Office) -> None:
    operation = await _stale(office)
    await office.cancel(await office.run_of(operation))
    other = await office.start_run(requester=SAM)
    await office.propose(other, await office.claim_run(other), version=3)
    refused = _refused(
        await press_again(office, await again_for(office, operation)), Reason.CONFLICTS_WITH
    )
    assert refused.detail["status"] == "awaiting"


@pytest.mark.parametrize(
    ("who", "reason"),
    [(OTTO, Reason.NOT_PERMITTED), (PrincipalId("slack:T0OTHER:U0X"), Reason.OTHER_WORKSPACE)],
)
async def test_who_may_neither_ask_nor_approve_is_refused_on_record(
    office: Office, who: PrincipalId, reason: Reason
) -> None:
    operation = await _outdated(office)
    _refused(await press_again(office, await again_for(office, operation, who)), reason)
    [note] = await office.rows("SELECT detail FROM journal WHERE event = 'decision_refused'")
    assert note == ({"asked": "propose_again", "reason": reason.value},)


async def test_the_first_requester_must_still_be_allowed_to_ask(office: Office) -> None:
    operation = await _outdated(office)
    people = {"requesters": ["U0SECOND"], "approvers": ["U0REVIEWER", "U0SECOND"]}
    await activate_policy(office.engine, policy(people=people))
    refused = _refused(
        await press_again(office, await again_for(office, operation, SAM)), Reason.NOT_PERMITTED
    )
    assert refused.detail["who"] == RIKO


@pytest.mark.parametrize(
    ("vote", "reason"),
    [(Vote.APPROVE, Reason.ALREADY_GRANTED), (Vote.REJECT, Reason.ALREADY_DENIED)],
)
async def test_what_is_decided_is_not_proposed_again(
    office: Office, vote: Vote, reason: Reason
) -> None:
    operation = await office.proposed()
    await office.click(operation, RENE, vote)
    await office.customer_writes()
    _refused(await press_again(office, await again_for(office, operation)), reason)


async def test_a_linked_run_waits_for_the_new_one_as_well(office: Office) -> None:
    operation = await office.proposed()
    second = await office.start_run(requester=SAM)
    await office.ask(second, await office.claim_run(second), closing())
    await office.customer_writes()
    new = await asked_again(office, operation)
    waiting = await office.rows("SELECT DISTINCT operation_id FROM proposals")
    assert waiting == [(new,)]
    _refused(await office.click(new, SAM), Reason.LINKED_REQUEST)


async def test_an_outside_ticket_is_looked_at_and_proposed_for_as_it_is(office: Office) -> None:
    async with at_zendesk(office) as outside:
        operation = await outside.proposed()
        _refused(
            await press_again(office, await again_for(office, operation)), Reason.NOT_OUT_OF_DATE
        )
        outside.there.customer_writes()
        new = await asked_again(office, operation)
        assert (await office.status(operation), await office.status(new)) == ("stale", "awaiting")


@pytest.mark.parametrize("side", Side)
async def test_a_crash_at_the_commit_leaves_all_of_it_or_nothing(
    office: Office, database_url: str, side: Side
) -> None:
    operation = await _outdated(office)
    asked = await again_for(office, operation)
    async with another_pool(database_url) as pool:
        dying = office.colleague(pool, failpoints=Trap(point(Commit.PROPOSE_AGAIN, side)))
        with pytest.raises(Crashed):
            await press_again(dying, asked)
    known = await read_back(office.engine, asked)
    if side is Side.BEFORE:
        assert known == NotConfirmed()
        assert await _statuses(office) == ["awaiting"]
        assert isinstance(await press_again(office, asked), Replaced)
    else:
        assert isinstance(known, Replaced)
        assert await _statuses(office) == ["stale", "awaiting"]
