"""T1: what a proposal comes to follows from its intent key, and is one commit."""

from __future__ import annotations

import asyncio

import pytest

from executor.domain.approval import Vote
from executor.domain.errors import DuplicateKey, StaleEpoch
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason, Refused
from executor.engine.click import Recorded
from executor.engine.converging import Accepted, AcceptResult, Answered
from executor.engine.desk import close_ticket
from executor.engine.setup import activate_policy
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_mail import applied, not_applied, unknown
from tests.support.office import RENE, SAM, TENANT, Office, closing, policy
from tests.support.waiting import another_pool


def _told(results: list[AcceptResult]) -> JsonObject:
    """Return the one answer that was given at once."""
    [result] = results
    assert isinstance(result, Answered), result
    return result.result


async def test_a_new_proposal_becomes_an_awaiting_operation_with_an_open_approval(
    office: Office,
) -> None:
    run_id = await office.start_run()
    operation = await office.propose(run_id, await office.claim_run(run_id))
    assert await office.status(operation) == "awaiting"
    [row] = await office.rows(
        "SELECT a.status, a.digest = o.digest, c.wanted_revision, p.linked FROM operations o "
        "JOIN approvals a ON a.operation_id = o.id JOIN cards c ON c.subject_id = o.id "
        "JOIN proposals p ON p.operation_id = o.id"
    )
    assert row == ("open", True, 1, False)


async def test_an_equal_proposal_of_another_run_links_and_its_requester_may_not_approve(
    office: Office,
) -> None:
    first = await office.start_run()
    operation = await office.propose(first, await office.claim_run(first))
    second = await office.start_run(requester=SAM)
    [linked] = await office.ask(second, await office.claim_run(second), closing())
    assert linked == Accepted(operation, linked=True)
    await office.show()
    refused = await office.click(operation, SAM)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.LINKED_REQUEST
    assert isinstance(await office.click(operation, RENE), Recorded)


async def test_another_content_of_another_run_conflicts_and_changes_nothing(office: Office) -> None:
    first = await office.start_run()
    operation = await office.propose(first, await office.claim_run(first))
    second = await office.start_run(requester=SAM)
    told = _told(
        await office.ask(second, await office.claim_run(second), closing(message="Otherwise."))
    )
    assert (told["error"], told["status"]) == ("conflicts_with", "awaiting")
    assert await office.status(operation) == "awaiting"


async def test_another_content_of_the_same_run_supersedes_in_the_same_commit(
    office: Office,
) -> None:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    first = await office.propose(run_id, claimed)
    await office.show()
    old_click = await office.click_for(first)
    second = await office.propose(run_id, claimed, message="Better words.", step=2)
    assert second != first
    assert await office.status(first) == "superseded"
    approval = "SELECT status FROM approvals WHERE tenant_id = :t AND operation_id = :id"
    assert await office.value(approval, first) == "void"
    revision = "SELECT content_revision FROM operations WHERE tenant_id = :t AND id = :id"
    assert await office.value(revision, second) == "2"
    [refused] = await office.decide(old_click)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.SUPERSEDED
    assert await office.status(second) == "awaiting"


async def test_an_approved_operation_is_superseded_and_its_worker_opens_nothing(
    office: Office,
) -> None:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    first = await office.propose(run_id, claimed)
    await office.show()
    await office.click(first)
    [held] = await office.claim_operations()
    await office.propose(run_id, claimed, message="Better words.", step=2)
    assert await office.status(first) == "superseded"
    await office.open_one(held)
    assert await office.rows("SELECT id FROM attempts") == []


async def test_the_same_words_again_in_the_same_run_name_the_same_operation(
    office: Office,
) -> None:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    first = await office.propose(run_id, claimed)
    assert await office.propose(run_id, claimed, step=2) == first


async def test_what_succeeded_is_told_and_not_repeated(office: Office) -> None:
    claimed, opened = await office.opened()
    await office.report(claimed, opened, applied())
    run_id = await office.start_run()
    told = _told(await office.ask(run_id, await office.claim_run(run_id), closing(), version=3))
    assert (told["status"], told["reason"]) == ("succeeded", "already_done")
    assert len(await office.rows("SELECT id FROM operations")) == 1


@pytest.mark.parametrize("outcome", [unknown(), not_applied(retryable=False)])
async def test_unknown_and_partial_operations_hold_their_key_until_the_ticket_is_open_again(
    office: Office, outcome: object
) -> None:
    claimed, opened = await office.opened()
    await office.report(claimed, opened, outcome)  # type: ignore[arg-type]
    run_id = await office.start_run()
    run = await office.claim_run(run_id)
    told = _told(await office.ask(run_id, run, closing(), version=3))
    assert told["error"] == "ticket_closed"
    await office.customer_writes()
    operation = await office.propose(run_id, run, version=4, step=3)
    assert await office.status(operation) == "awaiting"


async def test_a_reopened_ticket_begins_a_new_episode(office: Office) -> None:
    claimed, opened = await office.opened()
    await office.report(claimed, opened, applied())
    await office.customer_writes()
    run_id = await office.start_run()
    await office.propose(run_id, await office.claim_run(run_id), version=4)
    keys = await office.rows("SELECT intent_key FROM operations ORDER BY number")
    assert [key for (key,) in keys] == ["close:builtin:4101:1", "close:builtin:4101:2"]


@pytest.mark.parametrize(
    ("proposal", "version", "error", "words"),
    [
        (closing("9999"), 2, "ticket_unknown", "Search"),
        (closing(), None, "version_not_read", "Read the ticket"),
        (closing(), 1, "version_changed", "Read it again"),
        (closing(subject="Closed\r\nBcc: eve@evil.example"), 2, "content_invalid", "subject"),
        (closing(subject="Closed\nBcc: eve@evil.example"), 2, "content_invalid", "subject"),
        (closing(to=["pat@cust.example\nBcc: eve@evil.example"]), 2, "content_invalid", "to"),
        (closing(to=["not an address"]), 2, "content_invalid", "to"),
        (closing(message="a\0b"), 2, "content_invalid", "message"),
    ],
)
async def test_what_cannot_be_accepted_is_told_the_model_with_its_remedy(
    office: Office, proposal: object, version: int | None, error: str, words: str
) -> None:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    told = _told(await office.ask(run_id, claimed, proposal, version=version))  # type: ignore[arg-type]
    assert told["error"] == error
    assert words in str(told["message"])
    assert await office.rows("SELECT id FROM operations") == []
    assert await office.rows("SELECT number FROM steps WHERE kind = 'tool'") == [(2,)]


async def test_a_ticket_closed_by_hand_has_nothing_to_close(office: Office) -> None:
    await close_ticket(office.database, TENANT, "4101", author="Ann")
    run_id = await office.start_run()
    told = _told(await office.ask(run_id, await office.claim_run(run_id), closing(), version=3))
    assert told["error"] == "ticket_closed"


async def test_a_requester_who_lost_the_permission_is_refused(office: Office) -> None:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    people = {"requesters": ["U0SECOND"], "approvers": ["U0REVIEWER"]}
    await activate_policy(office.engine, policy(people=people))
    told = _told(await office.ask(run_id, claimed, closing()))
    assert (told["error"], told["missing"]) == ("not_permitted", "request")


async def test_two_proposals_of_one_step_are_each_decided_on_what_the_first_left(
    office: Office,
) -> None:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    first, same, other, elsewhere = await office.ask(
        run_id, claimed, closing(), closing(), closing(message="No."), closing("4102")
    )
    assert isinstance(first, Accepted)
    assert same == first
    assert isinstance(other, Answered)
    assert (other.result["error"], other.result["same_step"]) == ("conflicts_with", True)
    assert isinstance(elsewhere, Accepted)
    assert elsewhere.operation_id != first.operation_id


async def test_the_same_tool_call_is_accepted_once(office: Office) -> None:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    await office.propose(run_id, claimed)
    with pytest.raises(DuplicateKey):
        await office.ask(run_id, claimed, closing(message="Other words."))
    assert len(await office.rows("SELECT id FROM operations")) == 1


async def test_a_worker_that_lost_its_lease_accepts_nothing(office: Office) -> None:
    run_id = await office.start_run()
    stale = await office.claim_run(run_id, "w1")
    await office.later(seconds=31)
    await office.claim_run(run_id, "w2")
    with pytest.raises(StaleEpoch):
        await office.ask(run_id, stale, closing())
    assert await office.rows("SELECT id FROM operations") == []


async def test_a_crash_before_the_commit_leaves_nothing(office: Office) -> None:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    dying = office.colleague(failpoints=Trap("accept.before"))
    with pytest.raises(Crashed):
        await dying.ask(run_id, claimed, closing())
    assert await office.rows("SELECT id FROM operations") == []
    assert await office.rows("SELECT 1 FROM journal WHERE machine = 'operation'") == []


async def test_two_runs_that_propose_at_once_make_one_operation(
    office: Office, database_url: str
) -> None:
    runs = [await office.start_run(), await office.start_run(requester=SAM)]
    claims = [await office.claim_run(run_id) for run_id in runs]
    async with another_pool(database_url) as second:
        colleague = office.colleague(second)
        for ticket in [str(4200 + n) for n in range(10)]:
            await office.import_ticket(ticket)
            step = 1 + 10 * int(ticket)
            results = await asyncio.gather(
                office.ask(runs[0], claims[0], closing(ticket), step=step),
                colleague.ask(runs[1], claims[1], closing(ticket, message="No."), step=step),
            )
            kinds = sorted(type(result).__name__ for [result] in results)
            assert kinds == ["Accepted", "Answered"]


async def test_a_vote_that_was_cast_before_its_voter_asked_for_the_same_does_not_count(
    office: Office,
) -> None:
    operation = await office.proposed()
    await office.click(operation, SAM, Vote.APPROVE)
    run_id = await office.start_run(requester=SAM)
    await office.ask(run_id, await office.claim_run(run_id), closing())
    [held] = await office.claim_operations()
    await office.open_one(held)
    assert (await office.status(operation), await office.reason(operation)) == (
        "stale",
        "not_permitted",
    )
