"""A ticket closed and its email proved not sent: opened again, left, or asked about; told truly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from bot.sandbox.desk_faults import READ, DeskFault
from executor.domain.approval import Vote
from executor.domain.ids import AttemptId, OperationId
from executor.domain.transition import Reason, Refused
from executor.engine import endings
from executor.engine.compensating import compensate
from executor.engine.converging import Accepted
from executor.engine.desk import write_note
from executor.engine.opening import Opened
from executor.engine.report import Report, report
from executor.engine.settling import settle
from executor.engine.setup import activate_policy
from executor.engine.waking import wake
from executor.engine.word import Given, Said, Word
from executor.store.database import Database
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_mail import applied, not_applied
from tests.support.office import RENE, RIKO, SAM, TENANT, Office, policy
from tests.support.office import closing as proposal
from tests.support.outside import Outside, at_github, at_zendesk
from tests.support.waiting import another_pool

CLOSED, OPEN_AGAIN = ("closed", 3), ("open", 4)


def _rules(when: str, **changes: object) -> Any:
    tickets = {"when_mail_is_not_sent": when, "allow_desk_notification": True}
    return policy(tickets=tickets, **changes)


async def _partial(office: Office, ticket: str = "4101") -> tuple[OperationId, AttemptId]:
    """Walk to a closing whose email the provider has refused."""
    claimed, opened = await office.opened(ticket)
    assert await office.report(claimed, opened, not_applied(retryable=False)) == "partial"
    return claimed.claim.key[1], opened.attempt.id


async def _compensate(office: Office) -> int:
    return await compensate(office.engine, office.providers)


async def _reopening(office: Office, closing: OperationId) -> OperationId:
    [(id_,)] = await office.rows("SELECT id FROM operations WHERE compensates = :c", c=closing)
    return OperationId(id_)


async def _asked(office: Office) -> tuple[OperationId, OperationId]:
    """Walk to a reopening whose card is shown."""
    closing, _ = await _partial(office)
    await _compensate(office)
    await office.show()
    return closing, await _reopening(office, closing)


async def _work(office: Office) -> None:
    """Open what is due, and tell whoever waits until there is nobody left."""
    for claimed in await office.claim_operations():
        await office.open_one(claimed)
    while await wake(office.engine):
        pass


async def _ticket(office: Office, number: str = "4101") -> tuple[str, int]:
    [row] = await office.rows("SELECT status, version FROM desk_tickets WHERE id = :n", n=number)
    return row[0], row[1]


async def _ended(office: Office, closing: OperationId, reopening: OperationId) -> list[str]:
    run = await office.run_of(reopening)
    return [
        await office.status(closing),
        await office.status(reopening),
        await office.run_status(run),
    ]


async def _left(office: Office, closing: OperationId) -> dict[str, object]:
    [(why,)] = await office.rows(
        "SELECT detail -> 'left' FROM operations WHERE id = :c AND status = 'left'", c=closing
    )
    return dict(why)


async def _late_proof(office: Office, closing: OperationId, attempt: AttemptId) -> None:
    await report(office.engine, [Report((TENANT, closing), attempt, applied(), "webhook:test")])


# --- What the policy says -------------------------------------------------------------------------


async def test_a_person_approves_and_the_ticket_is_open_again(office: Office) -> None:
    closing, reopening = await _asked(office)
    assert await _ticket(office) == CLOSED
    await office.click(reopening)
    await _work(office)
    assert await _ended(office, closing, reopening) == ["compensated", "succeeded", "succeeded"]
    assert await _ticket(office) == OPEN_AGAIN
    # Why the email was not sent is still told.
    assert await office.reason(closing) == "refused_by_provider"
    events = await office.rows(
        "SELECT author, body FROM desk_events WHERE kind = 'reopened' AND operation_id = :r",
        r=reopening,
    )
    assert events == [
        (RENE, "Opened again by Signoff, for the email about the close was not sent.")
    ]


async def test_the_policy_consents_and_no_person_is_asked(office: Office) -> None:
    await activate_policy(office.engine, _rules("reopen", approval={"quorum": 2}))
    closing, _ = await _partial_with(office, RENE, SAM)
    await _compensate(office)
    reopening = await _reopening(office, closing)
    assert await office.status(reopening) == "approved"
    await _work(office)
    assert await _ended(office, closing, reopening) == ["compensated", "succeeded", "succeeded"]
    assert await _ticket(office) == OPEN_AGAIN
    version = _rules("reopen", approval={"quorum": 2}).version
    votes = await office.rows(
        "SELECT d.principal, d.digest = o.digest FROM decisions d JOIN approvals a ON "
        "a.id = d.approval_id JOIN operations o ON o.id = a.operation_id WHERE o.id = :r",
        r=reopening,
    )
    assert votes == [(f"policy:{version}", True)]


async def _partial_with(office: Office, *people: Any) -> tuple[OperationId, AttemptId]:
    closing = await office.proposed()
    for who in people:
        await office.click(closing, who)
    claimed = await office.claim_operation(closing)
    opened = await office.open_one(claimed)
    assert isinstance(opened, Opened), opened
    await office.report(claimed, opened, not_applied(retryable=False))
    return closing, opened.attempt.id


async def test_the_policy_leaves_it_closed(office: Office) -> None:
    await activate_policy(office.engine, _rules("leave"))
    closing, _ = await _partial(office)
    await _compensate(office)
    assert await _left(office, closing) == {"reason": "left_by_policy"}
    assert await office.rows("SELECT 1 FROM operations WHERE compensates IS NOT NULL") == []
    assert await _ticket(office) == CLOSED


async def test_a_person_says_to_leave_it_closed(office: Office) -> None:
    closing, reopening = await _asked(office)
    await office.click(reopening, RENE, Vote.REJECT, "Pat knows.")
    await _work(office)
    assert await _ended(office, closing, reopening) == ["left", "rejected", "succeeded"]
    why = await _left(office, closing)
    assert (why["reason"], why["ended"]) == ("not_reopened", "rejected")
    assert await _ticket(office) == CLOSED


async def test_nobody_decides_in_time_and_it_is_left(office: Office) -> None:
    closing, reopening = await _asked(office)
    await office.later(days=1, seconds=1)
    await endings.expire(office.engine, [(TENANT, reopening)])
    await _work(office)
    assert await _ended(office, closing, reopening) == ["left", "expired", "succeeded"]
    assert (await _left(office, closing))["why"] == "expired"


async def test_whoever_asked_for_the_closing_cannot_reopen_it_alone(office: Office) -> None:
    _, reopening = await _asked(office)
    refused = await office.click(reopening, RIKO)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.OWN_REQUEST
    assert await office.status(reopening) == "awaiting"


@pytest.mark.parametrize("stricter", ["leave", "ask"])
async def test_a_consent_that_the_policy_has_taken_back_opens_nothing(
    office: Office, stricter: str
) -> None:
    await activate_policy(office.engine, _rules("reopen"))
    closing, _ = await _partial(office)
    await _compensate(office)
    reopening = await _reopening(office, closing)
    await activate_policy(office.engine, _rules(stricter))
    await _work(office)
    assert await _ended(office, closing, reopening) == ["left", "stale", "succeeded"]
    assert await office.reason(reopening) == "policy_changed"
    assert await _ticket(office) == CLOSED


# --- Nobody's later change is undone --------------------------------------------------------------


@pytest.mark.parametrize("change", ["note", "opened_again"])
async def test_a_ticket_that_somebody_changed_since_is_left_as_they_left_it(
    office: Office, change: str
) -> None:
    closing, _ = await _partial(office)
    if change == "note":
        await write_note(office.database, TENANT, "4101", author="Ann", body="I called Pat.")
    else:
        await office.customer_writes()
    theirs = await _ticket(office)
    await _compensate(office)
    assert await _left(office, closing) == {
        "reason": "changed_since_close",
        "closed_at": 3,
        "version": 4,
    }
    assert await office.rows("SELECT 1 FROM operations WHERE compensates IS NOT NULL") == []
    assert await _ticket(office) == theirs


@pytest.mark.parametrize("moment", ["before the click", "after it"])
async def test_a_change_while_people_were_asked_stands(office: Office, moment: str) -> None:
    closing, reopening = await _asked(office)
    if moment == "after it":
        await office.click(reopening)
    await write_note(office.database, TENANT, "4101", author="Ann", body="Leave it closed.")
    if moment == "before the click":
        await office.click(reopening)
    await _work(office)
    assert await _ended(office, closing, reopening) == ["left", "stale", "succeeded"]
    assert await office.reason(reopening) == "version_changed"
    assert await _ticket(office) == ("closed", 4)


# --- The truth comes late -------------------------------------------------------------------------


async def test_proof_that_the_email_was_sent_ends_what_was_asked(office: Office) -> None:
    closing, attempt = await _partial(office)
    await _compensate(office)
    await office.show()
    reopening = await _reopening(office, closing)
    await _late_proof(office, closing, attempt)
    await _work(office)
    assert await _ended(office, closing, reopening) == ["succeeded", "stale", "succeeded"]
    assert await office.reason(reopening) == "nothing_to_undo"
    assert isinstance(await office.click(reopening), Refused)
    assert await _ticket(office) == CLOSED


async def test_proof_between_the_approval_and_the_opening_opens_nothing(office: Office) -> None:
    closing, attempt = await _partial(office)
    await _compensate(office)
    await office.show()
    reopening = await _reopening(office, closing)
    await office.click(reopening)
    claimed = await office.claim_operation(reopening)
    await _late_proof(office, closing, attempt)
    await office.open_one(claimed)
    assert await office.reason(reopening) == "nothing_to_undo"
    assert await _ticket(office) == CLOSED
    await _work(office)
    assert await _ended(office, closing, reopening) == ["succeeded", "stale", "succeeded"]


async def test_proof_after_the_reopening_is_kept_and_an_operator_hears_of_it(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    closing, attempt = await _partial(office)
    await _compensate(office)
    await office.show()
    await office.click(await _reopening(office, closing))
    await _work(office)
    await _late_proof(office, closing, attempt)
    await _work(office)
    assert await office.status(closing) == "compensated"
    assert await office.rows("SELECT status FROM attempts") == [("applied",)]
    assert await _ticket(office) == OPEN_AGAIN
    assert "email.send was done after all" in caplog.text


async def test_proof_that_the_email_was_sent_makes_what_was_left_so_whole(office: Office) -> None:
    await activate_policy(office.engine, _rules("leave"))
    closing, attempt = await _partial(office)
    await _compensate(office)
    assert await office.status(closing) == "left"
    await _late_proof(office, closing, attempt)
    assert await office.status(closing) == "succeeded"


async def test_what_is_asked_about_cannot_be_sent_again(office: Office) -> None:
    closing, attempt = await _partial(office)
    await _compensate(office)
    word = Word(TENANT, closing, attempt, Said.SEND_AGAIN, RENE, "", request_hash=b"1" * 32)
    [result] = await settle(office.engine, [word])
    assert isinstance(result, Refused)
    assert result.reason is Reason.ALREADY_ENDED
    assert await office.rows("SELECT count(*) FROM attempts") == [(1,)]


# --- Runs, and what comes afterwards --------------------------------------------------------------


async def test_cancelling_the_first_run_does_not_stop_it(office: Office) -> None:
    closing, reopening = await _asked(office)
    await office.cancel(await office.run_of(closing))
    await office.click(reopening)
    await _work(office)
    assert await _ended(office, closing, reopening) == ["compensated", "succeeded", "succeeded"]


async def test_cancelling_its_own_run_leaves_the_ticket_closed(office: Office) -> None:
    closing, reopening = await _asked(office)
    await office.cancel(await office.run_of(reopening))
    await _work(office)
    assert await _ended(office, closing, reopening) == ["left", "withdrawn", "cancelled"]


async def test_nobody_ever_drives_its_run(office: Office) -> None:
    _, reopening = await _asked(office)
    own = await office.run_of(reopening)
    assert own not in {claimed.key[1] for claimed in await office.claim_run_if_any("w9")}
    await office.click(reopening)
    await _work(office)
    await office.later(days=1)
    assert own not in {claimed.key[1] for claimed in await office.claim_run_if_any("w9")}
    assert await office.rows("SELECT kind FROM steps WHERE run_id = :r", r=own) == []


async def test_a_ticket_that_was_opened_again_can_be_closed_anew(office: Office) -> None:
    _, reopening = await _asked(office)
    await office.click(reopening)
    await _work(office)
    run_id = await office.start_run()
    [again] = await office.ask(run_id, await office.claim_run(run_id), proposal(), version=4)
    assert isinstance(again, Accepted)
    await office.show()
    await office.click(again.operation_id)
    claimed = await office.claim_operation(again.operation_id)
    opened = await office.open_one(claimed)
    assert isinstance(opened, Opened)
    assert await office.report(claimed, opened, applied()) == "succeeded"
    assert await _ticket(office) == ("closed", 5)


# --- Two at once, and deaths ----------------------------------------------------------------------


async def test_two_workers_at_once_ask_once(
    office: Office, database: Database, database_url: str
) -> None:
    closings = [(await _partial(office, ticket))[0] for ticket in ("4101", "4102")]
    async with another_pool(database_url) as pool:
        colleague = office.colleague(pool)
        await asyncio.gather(*(_compensate(one) for one in (office, colleague) * 2))
    asked = await office.rows("SELECT compensates FROM operations WHERE compensates IS NOT NULL")
    assert sorted(closings) == sorted(OperationId(closing) for (closing,) in asked)
    [(runs,)] = await office.rows("SELECT count(*) FROM runs WHERE NOT driven")
    assert runs == 2


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("name", ["compensate", "claim_operation", "open", "wake"])
async def test_a_death_anywhere_ends_in_one_reopening(office: Office, name: str, side: str) -> None:
    await activate_policy(office.engine, _rules("reopen"))
    closing, _ = await _partial(office)
    while await wake(office.engine):
        pass
    trap = Trap(f"{name}.{side}")
    dying = office.colleague(failpoints=trap)
    with suppress(Crashed):
        await _compensate(dying)
        await _work(dying)
    assert trap.sprung
    await office.later(seconds=60)
    await _compensate(office)
    await _work(office)
    reopening = await _reopening(office, closing)
    assert await _ended(office, closing, reopening) == ["compensated", "succeeded", "succeeded"]
    assert await _ticket(office) == OPEN_AGAIN


@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_death_while_it_is_left_ends_in_the_truth(office: Office, side: str) -> None:
    await activate_policy(office.engine, _rules("leave"))
    closing, _ = await _partial(office)
    with suppress(Crashed):
        await _compensate(office.colleague(failpoints=Trap(f"compensate.{side}")))
    await _compensate(office)
    assert await _left(office, closing) == {"reason": "left_by_policy"}


# --- Tickets at outside desks ---------------------------------------------------------------------


@pytest.fixture(params=["zendesk", "github"])
async def outside(request: pytest.FixtureRequest, office: Office) -> AsyncIterator[Outside]:
    async with AsyncExitStack() as stack:
        at = at_zendesk if request.param == "zendesk" else at_github
        yield await stack.enter_async_context(at(office))


async def _partial_outside(outside: Outside) -> OperationId:
    """Walk to a ticket that is closed at its desk and whose email was refused; a minute passes."""
    closing = await outside.approved()
    outside.mail.outcomes = [not_applied(retryable=False)]
    await outside.finish()
    assert await outside.office.status(closing) == "partial"
    assert outside.there.is_closed
    await outside.doubt.pass_time(60)
    return closing


async def _asked_outside(outside: Outside) -> tuple[OperationId, OperationId]:
    closing = await _partial_outside(outside)
    await _compensate(outside.office)
    await outside.office.show()
    return closing, await _reopening(outside.office, closing)


async def _finish(outside: Outside) -> None:
    await outside.finish()
    while await wake(outside.office.engine):
        pass


async def test_a_ticket_outside_is_opened_again_by_one_change(outside: Outside) -> None:
    closing, reopening = await _asked_outside(outside)
    await outside.office.click(reopening)
    await _finish(outside)
    assert await _ended(outside.office, closing, reopening) == [
        "compensated",
        "succeeded",
        "succeeded",
    ]
    assert not outside.there.is_closed
    assert outside.there.closes == 2
    assert [note.split(".")[0] for note in outside.there.notes] == [
        "Closed by Signoff after a person had approved it",
        "Opened again by Signoff, for the email about the close was not sent",
    ]
    # It can be closed again, as another closing.
    await outside.doubt.pass_time(60)
    again = await outside.approved()
    await outside.finish()
    assert await outside.office.status(again) == "succeeded"


async def test_the_policy_opens_a_ticket_outside_again_by_itself(outside: Outside) -> None:
    await activate_policy(outside.office.engine, _rules("reopen"))
    closing = await _partial_outside(outside)
    await _compensate(outside.office)
    await _finish(outside)
    assert await outside.office.status(closing) == "compensated"
    assert not outside.there.is_closed


async def test_a_ticket_outside_that_somebody_changed_since_is_left(outside: Outside) -> None:
    closing = await _partial_outside(outside)
    changes = outside.there.faults.counts["change"]
    outside.there.customer_writes()
    await _compensate(outside.office)
    assert (await _left(outside.office, closing))["reason"] == "changed_since_close"
    assert outside.there.faults.counts["change"] == changes


async def test_a_change_outside_while_people_were_asked_stands(outside: Outside) -> None:
    closing, reopening = await _asked_outside(outside)
    changes = outside.there.faults.counts["change"]
    outside.there.customer_reopens()
    await outside.office.click(reopening)
    await _finish(outside)
    assert await _ended(outside.office, closing, reopening) == ["left", "stale", "succeeded"]
    assert outside.there.faults.counts["change"] == changes


async def test_a_desk_that_does_not_tell_is_looked_at_again_later(outside: Outside) -> None:
    closing = await _partial_outside(outside)
    outside.there.faults.add(DeskFault.ERROR_BEFORE, request=READ)
    await _compensate(outside.office)
    assert await outside.office.status(closing) == "partial"
    assert await _compensate(outside.office) == 0
    await outside.doubt.pass_time(301)
    await _compensate(outside.office)
    await _reopening(outside.office, closing)


async def test_a_desk_that_never_tells_leaves_it_closed(outside: Outside) -> None:
    closing = await _partial_outside(outside)
    outside.there.faults.add(DeskFault.ERROR_BEFORE, request=READ)
    await outside.doubt.pass_time(86_401)
    await _compensate(outside.office)
    assert (await _left(outside.office, closing))["reason"] == "desk_unavailable"


async def test_a_lost_answer_to_a_reopening_is_read_back(office: Office) -> None:
    async with at_zendesk(office) as outside:
        closing, reopening = await _asked_outside(outside)
        outside.there.faults.add(DeskFault.RESET_AFTER)
        await office.click(reopening)
        await _finish(outside)
        assert await _ended(office, closing, reopening) == ["compensated", "succeeded", "succeeded"]
        assert (outside.there.is_closed, outside.there.closes) == (False, 2)


async def test_what_nobody_can_read_back_is_partial_until_a_person_says_it_was_done(
    office: Office,
) -> None:
    async with at_github(office) as outside:
        closing, reopening = await _asked_outside(outside)
        # The note is the first change, the reopening itself the second.
        outside.there.faults.add(DeskFault.RESET_AFTER, 2)
        await office.click(reopening)
        await _finish(outside)
        assert await office.status(reopening) == "unknown"
        assert await office.status(closing) == "partial"
        [(attempt,)] = await office.rows(
            "SELECT id FROM attempts WHERE operation_id = :r AND status = 'unknown'", r=reopening
        )
        word = Word(
            TENANT, reopening, attempt, Said.SENT, RENE, "It is open.", request_hash=b"1" * 32
        )
        [said] = await settle(office.engine, [word])
        assert isinstance(said, Given)
        await _finish(outside)
        assert await _ended(office, closing, reopening) == ["compensated", "succeeded", "succeeded"]
