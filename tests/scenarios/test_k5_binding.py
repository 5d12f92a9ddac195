"""K5: what was approved is what runs, over pauses, resumes and whatever the model repeats."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace

import pytest
from sqlalchemy import text

from executor.domain.approval import Vote
from executor.domain.closing import ProposeClosing, RenderedEmail
from executor.domain.errors import ForbiddenByDatabase
from executor.domain.ids import OperationId
from executor.domain.payloads import JsonObject
from executor.domain.ticket import Ticket
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.click import Recorded
from executor.engine.closure_email import ClosureEmails
from executor.engine.driver import Crew, drive
from executor.engine.executing import execute, openings
from executor.engine.leases import operation_keeper, run_keeper
from executor.engine.opening import Opened
from executor.engine.ports import ModelReply
from executor.engine.presenting import put_off
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.engine.waking import wake
from tests.support.fake_mail import applied
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import OTTO, RENE, Office, closing, policy
from tests.support.waiting import another_pool
from tests.support.working import Working

MESSAGE = "Your invoice is corrected."


def _proposal(ticket: str, message: str = MESSAGE) -> JsonObject:
    return {"ticket_id": ticket, "language": "en", "subject": "Closed", "message": message}


def _read(*tickets: str) -> ModelReply:
    return says("", *(calls("read_ticket", {"ticket_id": t}, "call_r") for t in tickets))


async def _do_it(office: Office, operation: OperationId) -> None:
    claimed = await office.claim_operation(operation)
    opened = await office.open_one(claimed)
    assert isinstance(opened, Opened)
    await office.report(claimed, opened, applied())
    await wake(office.engine)


async def test_b053_content_that_changes_after_the_approval_is_not_what_leaves(
    office: Office,
) -> None:
    operation = await office.approved()
    change = "UPDATE effects SET payload = payload || CAST('x' AS bytea) WHERE kind = 'email.send'"
    with pytest.raises(ForbiddenByDatabase, match="the_payload_is_what_was_digested"):
        async with office.database.transaction() as conn:
            await conn.execute(text(change))
    other = (
        "UPDATE operations SET intent = intent || ' ', "
        "digest = sha256(convert_to(intent || ' ', 'UTF8'))"
    )
    async with office.database.transaction() as conn:
        await conn.execute(text(other))
    await office.open_one(await office.claim_operation(operation))
    assert (await office.status(operation), await office.reason(operation)) == (
        "stale",
        "digest_mismatch",
    )
    assert await office.rows("SELECT 1 FROM attempts") == []


class _Rewritten(ClosureEmails):
    """The templates of a release that came after the approval."""

    def render(self, ticket: Ticket, proposal: ProposeClosing, signature: str) -> RenderedEmail:
        raise AssertionError("it was rendered again")

    lay_out = render  # type: ignore[assignment]


async def test_b053_a_template_or_a_signature_that_changes_later_changes_nothing_that_leaves(
    office: Office,
) -> None:
    operation = await office.approved()
    email = "SELECT payload FROM effects WHERE operation_id = :id AND kind = 'email.send'"
    [(approved,)] = await office.rows(email, id=operation)
    sender = "Acme Support <support@acme.example>"
    signed_anew = policy(email={"from": sender, "signature": "Your new team"})
    await activate_policy(office.engine, signed_anew)
    await _carry_out(replace(office.colleague(), emails=_Rewritten()), "w2")
    assert await office.status(operation) == "succeeded"
    [sent] = office.mail.sent
    assert sent.payload == bytes(approved)


async def test_b054_a_resume_does_not_take_a_pending_call_for_approved(office: Office) -> None:
    working = await Working.propose(office, closing())
    await office.later(seconds=31)
    await working.drive(owner="w2")
    assert await office.run_status(working.run_id) == "waiting"
    assert isinstance(working.model, FakeModel)
    assert working.model.called == 0
    assert await office.claim_operations() == []


@pytest.mark.parametrize("decision", ["absent", "of another", "of an outsider", "of other content"])
async def test_b055_no_decision_is_taken_for_yes(office: Office, decision: str) -> None:
    other = await office.proposed("4102")
    operation = await office.proposed("4101")
    if decision == "of another":
        await office.click(other)
    elif decision == "of an outsider":
        await office.click(operation, OTTO)
    elif decision == "of other content":
        wrong = replace(await office.click_for(operation), digest=hashlib.sha256(b"").digest())
        await office.decide(wrong)
    claimed = {held.claim.key[1] for held in await office.claim_operations()}
    assert operation not in claimed
    assert await office.status(operation) == "awaiting"


async def test_b056_approving_one_card_leaves_the_others_as_they_are(office: Office) -> None:
    await office.import_ticket("4103")
    working = await Working.propose(office, closing("4101"), closing("4102"), closing("4103"))
    await office.show()
    first, second, third = await working.operations()
    await office.click(second)
    await _do_it(office, second)
    assert [await office.status(o) for o in (first, second, third)] == [
        "awaiting", "succeeded", "awaiting",
    ]  # fmt: skip
    assert isinstance(await office.click(third), Recorded)


async def test_b057_the_first_decision_of_a_step_does_not_resume_the_run(office: Office) -> None:
    working = await Working.propose(office, closing("4101"), closing("4102"))
    await working.drive()
    await office.show()
    first, second = await working.operations()
    await office.click(first)
    await _do_it(office, first)
    await office.later(minutes=5)
    await sweep(office.engine)
    assert await working.due() is False
    assert len(await office.rows("SELECT 1 FROM operations")) == 2
    await office.click(second, vote=Vote.REJECT)
    await wake(office.engine)
    await working.drive()
    assert isinstance(working.model, FakeModel)
    [request] = working.model.requests
    results = [result.result["status"] for turn in request.turns for result in turn.results]
    assert results == ["succeeded", "rejected"]


async def test_b059_every_approved_call_of_a_step_is_executed_once_with_its_own_result(
    office: Office,
) -> None:
    working = await Working.propose(office, closing("4101"), closing("4102"))
    await working.drive()
    await office.show()
    first, second = await working.operations()
    await office.decide(await office.click_for(first), await office.click_for(second))
    for operation in (first, second):
        await _do_it(office, operation)
    await working.drive()
    assert [result["status"] for result in await working.told()] == ["succeeded"] * 2
    answers = await office.rows(
        "SELECT answers_ordinal, content -> 'result' ->> 'operation' FROM steps "
        "WHERE kind = 'tool' ORDER BY answers_ordinal"
    )
    assert len({name for _, name in answers}) == 2
    assert await office.rows("SELECT count(*) FROM attempts") == [(2,)]


async def test_b060_a_call_id_that_repeats_in_a_later_step_has_its_own_decision(
    office: Office,
) -> None:
    replies = [
        _read("4101", "4102"),
        says("", calls("propose_closing", _proposal("4101"), "call_0")),
        says("", calls("propose_closing", _proposal("4102"), "call_0")),
        says("Both."),
    ]
    working = await Working.start(office, FakeModel(replies))
    for count in (1, 2):
        await working.drive()
        await office.show()
        operation = (await working.operations())[-1]
        assert len(await working.operations()) == count
        assert await office.status(operation) == "awaiting"
        await office.click(operation)
        await _do_it(office, operation)
    await working.drive()
    assert await office.run_status(working.run_id) == "succeeded"


async def test_b061_two_calls_with_one_id_in_one_answer_have_two_approvals(
    office: Office,
) -> None:
    both = [calls("propose_closing", _proposal(t), "call_9") for t in ("4101", "4102")]
    model = FakeModel([_read("4101", "4102"), says("", *both)])
    working = await Working.start(office, model)
    await working.drive()
    await office.show()
    first, second = await working.operations()
    await office.click(first)
    await _do_it(office, first)
    assert await office.status(second) == "awaiting"
    assert await office.rows("SELECT status FROM desk_tickets ORDER BY id") == [
        ("closed",),
        ("open",),
    ]


async def test_b062_a_settled_pause_cannot_be_answered_again(office: Office) -> None:
    operation = await office.proposed()
    rejection = await office.click_for(operation, vote=Vote.REJECT)
    await office.decide(rejection)
    replayed = await office.decide(replace(rejection, vote=Vote.APPROVE))
    fresh = await office.click(operation)
    assert replayed == [NoChange(Reason.ALREADY_VOTED)]
    assert isinstance(fresh, Refused)
    assert fresh.reason is Reason.ALREADY_DENIED
    assert await office.status(operation) == "rejected"
    assert await office.claim_operations() == []


async def test_b063_two_approvals_at_two_processes_make_one_continuation(
    office: Office, database_url: str
) -> None:
    """Of two hundred such votes, ``test_decision_races.py`` tells what became of each."""
    async with another_pool(database_url) as pool:
        both = {"w1": office, "w2": office.colleague(pool)}
        for number in range(10):
            await office.import_ticket(str(6000 + number))
            working = await Working.propose(office, closing(str(6000 + number)))
            await working.drive()
            await office.show()
            [operation] = await working.operations()
            clicks = [await office.click_for(operation) for _ in both]
            results = await asyncio.gather(
                *(one.decide(click) for one, click in zip(both.values(), clicks, strict=True))
            )
            assert sorted(type(r).__name__ for [r] in results) == ["NoChange", "Recorded"]
            await asyncio.gather(*(_carry_out(one, name) for name, one in both.items()))
            await asyncio.gather(*(wake(one.engine) for one in both.values()))
            await asyncio.gather(*(_go_on(one, name, working) for name, one in both.items()))
            assert office.mail.accepted == number + 1
            assert isinstance(working.model, FakeModel)
            assert working.model.called == 1
            assert await office.run_status(working.run_id) == "succeeded"
            used = "SELECT status FROM reservations WHERE run_id = :id"
            assert await office.rows(used, id=working.run_id) == [("settled",)]


async def _carry_out(office: Office, owner: str) -> None:
    """Do what an executor does with whatever operations are due."""
    group = openings(office.engine, office.providers)
    for held in await office.claim_operations(owner):
        keeper = operation_keeper(office.engine, held.claim.key, held.lease)
        await execute(office.engine, office.providers, group, held.claim, keeper)


async def _go_on(office: Office, owner: str, working: Working) -> None:
    """Do what an executor does with whatever runs are due."""
    crew = Crew(working.model, office.providers, office.emails)
    for claimed in await office.claim_run_if_any(owner):
        keeper = run_keeper(office.engine, claimed.key, claimed.lease)
        await drive(office.engine, crew, claimed.key, keeper, asyncio.Event())


async def test_b065_a_card_that_cannot_be_posted_opens_nothing(office: Office) -> None:
    run_id = await office.start_run()
    operation = await office.propose(run_id, await office.claim_run(run_id))
    [due] = await office.due_cards()
    await put_off(office.engine, due.card, seconds=5, problem="channel_not_found")
    await office.later(days=2)
    await sweep(office.engine)
    assert await office.claim_operations() == []
    assert await office.status(operation) == "awaiting"
    await office.show()
    assert isinstance(await office.click(operation), Recorded)


async def test_b066_a_click_starts_nothing_and_posts_no_second_card(office: Office) -> None:
    operation = await office.approved()
    await office.show()
    assert await office.rows("SELECT count(*) FROM card_postings") == [(1,)]
    assert await office.rows("SELECT count(*) FROM runs") == [(1,)]
    assert await office.rows("SELECT count(*) FROM operations") == [(1,)]
    assert await office.status(operation) == "approved"


async def test_b067_three_recoveries_and_an_approval_are_one_card_and_one_execution(
    office: Office,
) -> None:
    working = await Working.propose(office, closing())
    for number in range(3):
        await office.later(seconds=31)
        async with office.database.transaction() as conn:
            await conn.execute(text("UPDATE runs SET due_at = signoff_clock()"))
        await working.drive(owner=f"w{number}")
        await office.show()
    [operation] = await working.operations()
    await office.click(operation, RENE)
    await _do_it(office, operation)
    assert await office.rows("SELECT count(*) FROM card_postings") == [(1,)]
    assert await office.rows("SELECT count(*) FROM attempts") == [(1,)]
    assert isinstance(working.model, FakeModel)
    assert working.model.called == 0
