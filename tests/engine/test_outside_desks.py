"""The job on tickets of outside desks: seen before it is decided, closed once, told truly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace

import pytest
from sqlalchemy import text

from bot.sandbox.desk_faults import READ, DeskFault
from bot.sandbox.provider_faults import Fault, PlannedFault
from executor.adapters.tickets.zendesk import Zendesk
from executor.domain.effect import Outcome, OutcomeKind
from executor.domain.ids import AttemptId, OperationId, operator_principal
from executor.domain.payloads import JsonObject
from executor.domain.recovery import MOST_SENDINGS, Why
from executor.domain.stamp import Stamp
from executor.engine.card_record import OperationRecord
from executor.engine.converging import Accepted, Answered
from executor.engine.desk_port import Observation, OutgoingChange
from executor.engine.doubt import in_doubt
from executor.engine.failpoint import CALL, Commit, Side, point
from executor.engine.records import read_operation
from executor.engine.recovering import recover_due, recover_until_cancelled
from executor.engine.report import Report, report
from executor.engine.settling import settle
from executor.engine.setup import activate_policy
from executor.engine.word import Given, Said, Word
from executor.store.database import Database
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_mail import unknown
from tests.support.fake_model import FakeModel, calls, says
from tests.support.mail_doubles import resend
from tests.support.office import RENE, TENANT, Office, closing, policy
from tests.support.outside import PAT, TICKET, Outside, allowing, at_github, at_zendesk, kinds
from tests.support.reference_job import work_to_its_end
from tests.support.waiting import until_true


@pytest.fixture
async def zendesk(office: Office) -> AsyncIterator[Outside]:
    async with at_zendesk(office) as outside:
        yield outside


@pytest.fixture
async def github(office: Office) -> AsyncIterator[Outside]:
    async with at_github(office) as outside:
        yield outside


@pytest.fixture(params=["zendesk", "github"])
async def outside(request: pytest.FixtureRequest, office: Office) -> AsyncIterator[Outside]:
    async with AsyncExitStack() as stack:
        at = at_zendesk if request.param == "zendesk" else at_github
        yield await stack.enter_async_context(at(office))


async def _card(outside: Outside, operation: object) -> OperationRecord:
    async with outside.office.database.transaction() as conn:
        return await read_operation(conn, TENANT, operation)  # type: ignore[arg-type]


async def test_a_ticket_outside_is_closed_and_its_mail_sent_once(
    outside: Outside, database: Database
) -> None:
    office = outside.office
    proposal = {
        "ticket_id": TICKET,
        "language": "en",
        "subject": "Ticket 4101 closed",
        "message": "Your invoice is corrected.",
        "to": [PAT],
    }
    model = FakeModel(
        [
            says("", calls("read_ticket", {"ticket_id": TICKET})),
            says("", calls("propose_closing", proposal)),
            says("It is closed."),
        ]
    )
    _, operation = await work_to_its_end(office, database, model)
    assert await office.status(operation) == "succeeded"
    assert (outside.there.is_closed, outside.there.closes) == (True, 1)
    assert len(outside.there.notes) == 1
    assert outside.mail.accepted == 1
    [(stamp, episode)] = await office.rows(
        "SELECT o.closed_stamp, e.closed_stamp FROM operations o JOIN ticket_episodes e USING "
        "(tenant_id, desk, ticket_id)"
    )
    assert stamp == episode == (await outside.version()).as_json()  # type: ignore[union-attr]


# --- Before anything is approved ------------------------------------------------------------------


async def test_what_was_read_before_the_ticket_moved_is_not_proposed_on(outside: Outside) -> None:
    read = await outside.version()
    await outside.doubt.pass_time(60)
    outside.there.customer_writes()
    [answer] = await outside.ask(read)
    assert isinstance(answer, Answered)
    assert answer.result["error"] == "version_changed"
    assert await outside.office.rows("SELECT 1 FROM operations") == []


async def test_a_ticket_outside_that_was_not_read_or_is_closed_or_is_not_there_is_refused(
    outside: Outside,
) -> None:
    unread, counted = [(await outside.ask(version))[0] for version in (None, 2)]
    outside.there.somebody_closes()
    closed = (await outside.ask(await outside.version()))[0]
    absent = (await outside.ask(2, closing("9999", to=[PAT])))[0]
    answers = [unread, counted, closed, absent]
    assert [a.result["error"] for a in answers if isinstance(a, Answered)] == [
        "version_not_read",
        "version_changed",
        "ticket_closed",
        "ticket_unknown",
    ]


async def test_a_desk_that_does_not_answer_is_an_answer_to_the_model(outside: Outside) -> None:
    read = await outside.version()
    outside.there.faults.add(DeskFault.ERROR_BEFORE, request=READ)
    [answer] = await outside.ask(read)
    assert isinstance(answer, Answered)
    assert answer.result["error"] == "desk_unavailable"


async def test_two_equal_proposals_on_one_ticket_outside_are_one_operation(
    outside: Outside,
) -> None:
    version = await outside.version()
    [first] = await outside.ask(version)
    [second] = await outside.ask(version)
    assert isinstance(first, Accepted)
    assert second == Accepted(first.operation_id, linked=True)


async def test_a_desk_that_mails_the_customer_itself_is_refused_until_the_policy_allows_it(
    office: Office,
) -> None:
    async with at_zendesk(office, notifies=True) as outside:
        [answer] = await outside.ask(await outside.version())
        assert isinstance(answer, Answered)
        assert answer.result["error"] == "desk_notifies"

        await activate_policy(office.engine, allowing())
        operation = await outside.approved()
        await activate_policy(office.engine, policy())
        [claimed] = await office.claim_operations()
        await outside.doubt.execute(claimed)
        # The stricter rule binds at the opening, too.
        assert await office.reason(operation) == "desk_notifies"
        assert (outside.there.closes, outside.mail.accepted) == (0, 0)

        await activate_policy(office.engine, allowing())
        again = await outside.approved()
        await outside.finish()
        assert await office.status(again) == "succeeded"


class _Slow(Zendesk):
    """A desk whose readings are eleven seconds old when they arrive, as often as told."""

    outside: Outside
    slow = 0

    async def read(self, ticket_id: str) -> Observation | None:
        seen = await super().read(ticket_id)
        if self.slow:
            self.slow -= 1
            await self.outside.doubt.pass_time(11)
        return seen


async def test_a_look_that_is_too_old_decides_nothing_at_the_proposal(office: Office) -> None:
    async with at_zendesk(office, kind=_Slow) as outside:
        desk = outside.desk
        assert isinstance(desk, _Slow)
        version, desk.outside = await outside.version(), outside
        desk.slow = 3
        [late] = await outside.ask(version)
        assert isinstance(late, Answered)
        assert (desk.slow, late.result["error"]) == (0, "desk_unavailable")
        desk.slow = 2
        [in_time] = await outside.ask(version)
        assert isinstance(in_time, Accepted)


async def test_a_look_that_is_too_old_decides_nothing_at_the_opening(office: Office) -> None:
    async with at_zendesk(office, kind=_Slow) as outside:
        operation, desk = await outside.approved(), outside.desk
        assert isinstance(desk, _Slow)
        desk.outside, desk.slow = outside, 1
        [claimed] = await office.claim_operations()
        await outside.doubt.execute(claimed)
        assert await office.status(operation) == "approved"
        assert await office.rows("SELECT 1 FROM attempts") == []
        await outside.finish()
        assert await office.status(operation) == "succeeded"


# --- The ticket moves on --------------------------------------------------------------------------


async def test_a_ticket_that_moved_before_the_opening_stops_it_and_the_card_can_say_why(
    outside: Outside,
) -> None:
    operation = await outside.approved()
    outside.there.customer_writes()
    await outside.finish()
    assert await outside.office.status(operation) == "stale"
    assert await outside.office.reason(operation) == "version_changed"
    assert kinds((await outside.detail(operation))["changes"]) == ["customer_message"]
    card = await _card(outside, operation)
    assert [change.body for change in card.target.changes_since] == ["still broken"]
    assert outside.there.faults.counts["change"] == 0
    assert outside.mail.accepted == 0


async def test_a_ticket_that_moved_between_our_close_and_our_mail_stops_the_mail(
    outside: Outside,
) -> None:
    operation = await outside.approved()
    await outside.until_closed(operation)
    await outside.doubt.pass_time(1)
    outside.there.customer_writes()
    await outside.finish()
    assert await outside.office.status(operation) == "partial"
    assert await outside.office.reason(operation) == "version_changed"
    assert "customer_message" in kinds((await outside.detail(operation))["changes"])
    assert (await outside.parts(operation))[-1] == ("email.send", "skipped")
    assert outside.mail.accepted == 0


async def test_a_change_between_the_note_and_the_close_fails_and_says_that_a_note_stands(
    github: Outside,
) -> None:
    operation = await github.approved()
    [claimed] = await github.office.claim_operations()
    await github.doubt.execute(claimed)
    assert await github.parts(operation) == [
        ("ticket.note", "applied"),
        ("ticket.close", "planned"),
        ("email.send", "planned"),
    ]
    github.there.customer_writes()
    await github.finish()
    assert await github.office.status(operation) == "failed"
    assert await github.office.reason(operation) == "version_changed"
    assert [status for _, status in await github.parts(operation)] == [
        "applied",
        "skipped",
        "skipped",
    ]
    assert (github.there.is_closed, github.mail.accepted) == (False, 0)


async def test_a_ticket_that_comes_back_may_be_closed_once_more(outside: Outside) -> None:
    first = await outside.approved()
    await outside.finish()
    await outside.doubt.pass_time(60)
    outside.there.customer_reopens()
    second = await outside.approved()
    await outside.finish()
    assert [await outside.office.status(o) for o in (first, second)] == ["succeeded"] * 2
    assert (outside.there.closes, outside.mail.accepted) == (2, 2)
    keys = await outside.office.rows("SELECT intent_key FROM operations ORDER BY number")
    assert [key.rpartition(":")[2] for (key,) in keys] == ["1", "2"]


# --- The desk is away -----------------------------------------------------------------------------


def _away(outside: Outside, readings: int) -> None:
    for number in range(1, readings + 1):
        outside.there.faults.add(DeskFault.ERROR_BEFORE, number, request=READ)


async def test_a_desk_that_is_away_is_waited_for_and_the_card_says_so(outside: Outside) -> None:
    operation = await outside.approved()
    _away(outside, 3)
    [claimed] = await outside.office.claim_operations()
    await outside.doubt.execute(claimed)
    card = await _card(outside, operation)
    assert (card.status, card.desk_problem) == ("approved", "the desk answered 502")
    assert await outside.office.rows("SELECT 1 FROM attempts") == []
    await outside.finish()
    assert await outside.office.status(operation) == "succeeded"
    assert (await _card(outside, operation)).desk_problem is None
    run_id = await outside.office.run_of(operation)
    noted = [event for event, *_ in await outside.office.events(run_id) if event == "desk_silent"]
    assert len(noted) == 1


async def test_a_desk_that_stays_away_ends_the_wait_when_the_time_to_use_is_over(
    outside: Outside,
) -> None:
    operation = await outside.approved()
    _away(outside, 200)
    await outside.finish()
    assert await outside.office.status(operation) == "expired"
    assert await outside.office.reason(operation) == "time_to_use_over"


async def test_a_desk_that_goes_away_after_the_close_ends_in_the_truth_about_both(
    outside: Outside,
) -> None:
    operation = await outside.approved()
    await outside.until_closed(operation)
    _away(outside, 200)
    steps = await outside.finish()
    assert await outside.office.status(operation) == "partial"
    assert await outside.office.reason(operation) == "desk_unavailable"
    assert outside.mail.accepted == 0
    # The waits double up to five minutes: an hour takes a few looks, not hundreds.
    assert steps < 30


async def test_a_desk_that_stays_too_slow_after_the_close_ends_in_the_truth_as_well(
    office: Office,
) -> None:
    async with at_zendesk(office, kind=_Slow) as outside:
        operation, desk = await outside.approved(), outside.desk
        await outside.until_closed(operation)
        assert isinstance(desk, _Slow)
        desk.outside, desk.slow = outside, 1_000
        await outside.finish()
        assert await office.status(operation) == "partial"
        assert await office.reason(operation) == "desk_unavailable"
        assert outside.mail.accepted == 0


async def test_a_desk_that_is_away_for_a_moment_is_waited_for_however_late_the_turn_comes(
    github: Outside,
) -> None:
    operation, attempt = await _doubtful(github)
    await github.doubt.pass_time(2 * 86_400)
    await _say(github, operation, attempt, Said.SEND_AGAIN)
    _away(github, 1)
    await github.finish()
    assert await github.office.status(operation) == "succeeded"
    assert (github.there.closes, github.mail.accepted) == (1, 1)


async def test_people_who_cannot_be_looked_at_are_waited_for_seldom_and_not_for_ever(
    zendesk: Outside,
) -> None:
    office = zendesk.office
    minutes = {"approval": {"use_within_seconds": 600}}
    await activate_policy(office.engine, policy(**minutes))
    operation = await zendesk.approved()
    await zendesk.until_closed(operation)
    await office.later_unseen(seconds=61)
    read, looks = zendesk.there.faults.counts[READ], 0
    while await office.status(operation) == "executing":
        looks += 1
        for claimed in await office.claim_operations():
            await zendesk.doubt.execute(claimed)
        # Slack tells nobody anything.
        await office.later_unseen(seconds=max(await zendesk.doubt.next_due() or 0, 0.01))
        assert looks < 100
    assert await office.status(operation) == "partial"
    assert await office.reason(operation) == "identity_unknown"
    # Ten minutes of that, and not each second of them; one look takes two readings.
    assert zendesk.there.faults.counts[READ] - read < 2 * 60
    assert zendesk.mail.accepted == 0


class _Odd(Zendesk):
    """A desk whose answers, when told so, are about another ticket or cannot be understood."""

    odd = ""

    async def read(self, ticket_id: str) -> Observation | None:
        seen = await super().read(ticket_id)
        if self.odd == "unreadable":
            raise RuntimeError("nobody has thought of this")
        if self.odd == "about another" and seen is not None:
            return replace(seen, ticket=replace(seen.ticket, id="4999"))
        return seen


@pytest.mark.parametrize("odd", ["unreadable", "about another"])
async def test_an_answer_that_nobody_can_use_is_no_answer(office: Office, odd: str) -> None:
    async with at_zendesk(office, kind=_Odd) as outside:
        version, desk = await outside.version(), outside.desk
        assert isinstance(desk, _Odd)
        desk.odd = odd
        [answer] = await outside.ask(version)
        assert isinstance(answer, Answered)
        assert answer.result["error"] == "desk_unavailable"

        desk.odd = ""
        operation = await outside.approved()
        await outside.until_closed(operation)
        desk.odd = odd
        # It does not go on for ever: it ends as with a desk that is away.
        await outside.finish()
        assert await office.reason(operation) == "desk_unavailable"
        assert outside.mail.accepted == 0


# --- Answers are lost -----------------------------------------------------------------------------

LOST_AFTER = [DeskFault.RESET_AFTER, DeskFault.ERROR_AFTER, DeskFault.CUT_BODY]
LOST_BEFORE = [DeskFault.RESET_BEFORE, DeskFault.ERROR_BEFORE, DeskFault.STRANGER]


@pytest.mark.parametrize("fault", [*LOST_AFTER, *LOST_BEFORE, DeskFault.LIMITED])
async def test_zendesk_closes_once_whatever_becomes_of_the_first_answer(
    zendesk: Outside, fault: DeskFault
) -> None:
    operation = await zendesk.approved()
    zendesk.there.faults.add(fault)
    await zendesk.finish()
    assert await zendesk.office.status(operation) == "succeeded"
    assert (zendesk.there.closes, len(zendesk.there.notes), zendesk.mail.accepted) == (1, 1, 1)
    [(stamp,)] = await zendesk.office.rows("SELECT closed_stamp FROM operations")
    assert stamp == (await zendesk.version()).as_json()  # type: ignore[union-attr]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("fault", LOST_AFTER)
async def test_github_finds_what_it_has_taken(
    github: Outside, fault: DeskFault, number: int
) -> None:
    operation = await github.approved()
    github.there.faults.add(fault, number)
    await github.finish()
    assert await github.office.status(operation) == "succeeded"
    assert (github.there.closes, len(github.there.notes), github.mail.accepted) == (1, 1, 1)


@pytest.mark.parametrize("number", [1, 2])
async def test_what_github_does_not_show_proves_nothing_and_is_put_to_a_person(
    github: Outside, number: int
) -> None:
    operation = await github.approved()
    github.there.faults.add(DeskFault.RESET_BEFORE, number)
    await github.finish()
    assert await github.office.status(operation) == "unknown"
    assert "no proof" in (await github.doubt.asked(operation) or "")
    assert github.there.faults.counts["change"] == number
    assert (github.there.is_closed, github.mail.accepted) == (False, 0)


async def test_what_lands_late_is_found_before_it_is_repeated(zendesk: Outside) -> None:
    operation = await zendesk.approved()
    zendesk.there.faults.add(DeskFault.LATE)
    [claimed] = await zendesk.office.claim_operations()
    await zendesk.doubt.execute(claimed)
    await zendesk.doubt.recover()
    # Read and found unchanged; now it lands, and the repeat meets a changed ticket.
    zendesk.there.faults.land()
    await zendesk.finish()
    assert await zendesk.office.status(operation) == "succeeded"
    assert (zendesk.there.closes, len(zendesk.there.notes), zendesk.mail.accepted) == (1, 1, 1)


async def test_a_desk_that_cannot_be_read_back_is_read_later(outside: Outside) -> None:
    operation = await outside.approved()
    await _until_tried(outside, "ticket.close", DeskFault.RESET_AFTER)
    _away(outside, 2)
    await outside.finish()
    assert await outside.office.status(operation) == "succeeded"
    assert outside.there.closes == 1


async def test_a_request_that_goes_on_getting_lost_is_put_to_a_person(zendesk: Outside) -> None:
    operation = await zendesk.approved()
    for number in range(1, 9):
        zendesk.there.faults.add(DeskFault.RESET_BEFORE, number)
    await zendesk.finish()
    assert await zendesk.office.status(operation) == "unknown"
    assert zendesk.there.faults.counts["change"] == MOST_SENDINGS
    assert await zendesk.doubt.asked(operation) == Why.SENDINGS_USED_UP.value


async def _until_tried(outside: Outside, kind: str, fault: DeskFault) -> None:
    """Execute until an attempt at this part has lost its answer to ``fault``."""
    while True:
        [claimed] = await outside.office.claim_operations()
        [(following,)] = await outside.office.rows(
            "SELECT kind FROM effects WHERE status = 'planned' ORDER BY position LIMIT 1"
        )
        if following == kind:
            outside.there.faults.add(fault)
            await outside.doubt.execute(claimed)
            return
        await outside.doubt.execute(claimed)


class _Hanging(Zendesk):
    """A desk that, while it is told to, does not answer who reads a change back."""

    silent: asyncio.Event | None = None
    asked: asyncio.Event

    async def read_back(self, change: OutgoingChange) -> Outcome:
        if self.silent is not None:
            self.asked.set()
            await self.silent.wait()
        return await super().read_back(change)


async def test_a_desk_that_hangs_holds_up_no_mail(office: Office) -> None:
    async with resend(office) as (provider, mails):
        mail = await mails.claimed("4102")
        provider.fail(PlannedFault(Fault.DROP), call=1)
        await mails.execute(mail)
        async with at_zendesk(office, kind=_Hanging) as outside:
            mails.use(mails.mail)
            await outside.approved()
            await _until_tried(outside, "ticket.close", DeskFault.RESET_BEFORE)
            desk = outside.desk
            assert isinstance(desk, _Hanging)
            desk.silent, desk.asked = asyncio.Event(), asyncio.Event()
            async with office.database.transaction() as conn:
                await conn.execute(
                    text(
                        "UPDATE attempts SET recover_at = signoff_clock() + interval '10 seconds' "
                        "WHERE capability = 'keyed'"
                    )
                )
            often = replace(office.engine.durations, sweep_seconds=0.05)
            engine = replace(office.engine, durations=often)
            recovering = asyncio.create_task(recover_until_cancelled(engine, office.providers))
            await desk.asked.wait()
            await office.later(seconds=11)
            await until_true(
                office.database,
                "SELECT status = 'executing' FROM operations WHERE id = :o",
                o=mail.claim.key[1],
            )
            recovering.cancel()
            await asyncio.wait([recovering])


async def test_proof_of_an_earlier_close_does_not_count_the_ticket_as_come_back_again(
    zendesk: Outside,
) -> None:
    office, early = zendesk.office, await zendesk.version()
    first = await zendesk.approved()
    await _until_tried(zendesk, "ticket.close", DeskFault.RESET_BEFORE)
    await office.cancel(await office.run_of(first))
    await zendesk.finish()
    [(attempt,)] = await office.rows("SELECT id FROM attempts")
    await _say(zendesk, first, attempt, Said.NOT_SENT)
    await zendesk.approved()
    await zendesk.finish()
    await zendesk.doubt.pass_time(60)
    zendesk.there.customer_reopens()
    third = await zendesk.proposed()
    # A receipt of the very first attempt, which says when that had closed the ticket.
    assert isinstance(early, Stamp)
    evidence: JsonObject = {"status": 200, "stamp": early.as_json()}
    outcome = Outcome(OutcomeKind.APPLIED, evidence)
    await report(office.engine, [Report((TENANT, first), attempt, outcome, "w1")])
    [again] = await zendesk.ask(await zendesk.version())
    assert again == Accepted(third, linked=True)


# --- People ---------------------------------------------------------------------------------------


async def test_after_a_cancel_a_close_in_doubt_is_looked_up_and_never_sent_again(
    zendesk: Outside,
) -> None:
    operation = await zendesk.approved()
    await _until_tried(zendesk, "ticket.close", DeskFault.LATE)
    await zendesk.office.cancel(await zendesk.office.run_of(operation))
    await zendesk.doubt.recover()
    await zendesk.doubt.pass_time(30)
    zendesk.there.faults.land()
    await zendesk.finish()
    assert zendesk.there.faults.counts["change"] == 1
    assert await zendesk.office.status(operation) == "partial"
    assert await zendesk.office.reason(operation) == "cancelled"
    assert (zendesk.there.is_closed, zendesk.mail.accepted) == (True, 0)


async def test_after_a_cancel_what_stays_unknown_is_put_to_a_person(zendesk: Outside) -> None:
    operation = await zendesk.approved()
    await _until_tried(zendesk, "ticket.close", DeskFault.RESET_BEFORE)
    await zendesk.office.cancel(await zendesk.office.run_of(operation))
    await zendesk.finish()
    assert zendesk.there.faults.counts["change"] == 1
    assert await zendesk.office.status(operation) == "unknown"
    assert await zendesk.doubt.asked(operation) == Why.NOT_PERMITTED.value


async def _doubtful(outside: Outside) -> tuple[OperationId, AttemptId]:
    """Walk to a close of which nobody knows, and whose machines have given up."""
    operation = await outside.approved()
    await _until_tried(outside, "ticket.close", DeskFault.RESET_BEFORE)
    while await outside.office.rows("SELECT 1 FROM attempts WHERE recover_at IS NOT NULL"):
        await outside.doubt.recover()
        await outside.doubt.pass_time(await outside.doubt.next_due() or 0)
    [(attempt,)] = await outside.office.rows("SELECT id FROM attempts WHERE status = 'unknown'")
    return operation, attempt


async def _say(outside: Outside, operation: OperationId, attempt: AttemptId, said: Said) -> None:
    word = Word(TENANT, operation, attempt, said, operator_principal("Olga"), "")
    if said is Said.SEND_AGAIN:
        word = replace(word, principal=RENE, request_hash=bytes(32), user_id="U0REVIEWER")
    [result] = await settle(outside.office.engine, [word])
    assert isinstance(result, Given), result


@pytest.mark.parametrize("is_closed", [True, False])
async def test_a_person_who_saw_it_closed_lets_the_mail_leave_if_it_is_closed(
    github: Outside, is_closed: bool
) -> None:
    operation, attempt = await _doubtful(github)
    if is_closed:
        github.there.somebody_closes()
    await _say(github, operation, attempt, Said.SENT)
    await github.finish()
    assert await github.office.status(operation) == ("succeeded" if is_closed else "partial")
    assert github.mail.accepted == is_closed


async def test_a_person_who_says_that_it_was_not_closed_ends_it_without_a_mail(
    github: Outside,
) -> None:
    operation, attempt = await _doubtful(github)
    await _say(github, operation, attempt, Said.NOT_SENT)
    await github.finish()
    assert await github.office.status(operation) == "failed"
    assert (await github.parts(operation))[-1] == ("email.send", "skipped")
    # A receipt that comes after all is kept, and the record says what is true.
    outcome = Outcome(OutcomeKind.APPLIED, {"desk": "github:acme/support", "status": 200})
    await report(github.office.engine, [Report((TENANT, operation), attempt, outcome, "w1")])
    assert await github.office.status(operation) == "left"
    assert github.mail.accepted == 0


async def test_an_operator_settles_the_part_in_doubt_past_tries_at_an_earlier_one(
    zendesk: Outside,
) -> None:
    operation = await zendesk.approved()
    for number in (1, 2):
        zendesk.there.faults.add(DeskFault.RESET_BEFORE, number)
    zendesk.mail.outcomes.append(unknown())
    await zendesk.finish()
    # Two tries at the close stay unknown for ever, and the third was applied; now it is the mail.
    tries = await zendesk.office.rows("SELECT status FROM attempts ORDER BY opened_at")
    assert [status for (status,) in tries] == ["unknown", "unknown", "applied", "unknown"]
    [doubt] = await in_doubt(zendesk.office.engine)
    await _say(zendesk, operation, doubt.attempt_id, Said.SENT)
    assert await zendesk.office.status(operation) == "succeeded"


async def test_a_close_is_sent_again_at_a_persons_word(github: Outside) -> None:
    operation, attempt = await _doubtful(github)
    card = await _card(github, operation)
    assert card.doubt is not None
    assert card.doubt.not_again is None
    await _say(github, operation, attempt, Said.SEND_AGAIN)
    await github.finish()
    assert await github.office.status(operation) == "succeeded"
    assert (github.there.closes, github.mail.accepted) == (1, 1)


# --- The process dies -----------------------------------------------------------------------------

_COMMITS = [Commit.OPEN, CALL, Commit.REPORT]
_RECOVERIES = [Commit.RECOVER, Commit.RECORD_SEARCH]
_DEATHS = [point(name, side) for name in _COMMITS for side in Side]


async def _dies(outside: Outside, name: str, visit: int) -> None:
    """Let workers go on until one has died at this visit of a failpoint."""
    trap = Trap(name, at_visit=visit)
    dying = outside.office.colleague(failpoints=trap)
    for _ in range(4):
        for claimed in await outside.office.claim_operations():
            with suppress(Crashed):
                await outside.doubt.execute(claimed, dying)
        if trap.sprung:
            return
    raise AssertionError(f"nobody reached {name}")


@pytest.mark.parametrize("visit", [1, 2])
@pytest.mark.parametrize("name", _DEATHS)
async def test_zendesk_closes_once_and_mails_once_wherever_a_worker_dies(
    zendesk: Outside, name: str, visit: int
) -> None:
    operation = await zendesk.approved()
    await _dies(zendesk, name, visit)
    await zendesk.finish()
    assert (zendesk.there.closes, len(zendesk.there.notes)) == (1, 1)
    # A worker that dies with its mail on the way leaves what SMTP cannot tell.
    told = (point(Commit.OPEN, Side.BEFORE), point(Commit.REPORT, Side.AFTER))
    if visit == 1 or name in told:
        assert await zendesk.office.status(operation) == "succeeded"
        assert zendesk.mail.accepted == 1
    else:
        assert await zendesk.office.status(operation) == "unknown"
        assert zendesk.mail.accepted <= 1


@pytest.mark.parametrize("visit", [1, 2])
@pytest.mark.parametrize("name", _DEATHS)
async def test_github_never_says_what_it_cannot_know_wherever_a_worker_dies(
    github: Outside, name: str, visit: int
) -> None:
    operation = await github.approved()
    await _dies(github, name, visit)
    await github.finish()
    taken = {
        1: (github.there.closes, len(github.there.notes)),
        2: (github.there.closes, 1),
    }[visit]
    known = name not in (point(Commit.OPEN, Side.AFTER), point(CALL, Side.BEFORE))
    assert await github.office.status(operation) == ("succeeded" if known else "unknown")
    assert taken == ((1, 1) if known else (0, 0 if visit == 1 else 1))
    assert github.mail.accepted == known


@pytest.mark.parametrize("name", [point(commit, side) for commit in _RECOVERIES for side in Side])
@pytest.mark.parametrize("fault", [DeskFault.RESET_BEFORE, DeskFault.RESET_AFTER])
async def test_a_recovery_that_dies_is_taken_up_where_its_record_stands(
    zendesk: Outside, name: str, fault: DeskFault
) -> None:
    operation = await zendesk.approved()
    await _until_tried(zendesk, "ticket.close", fault)
    trap = Trap(name)
    dying = zendesk.office.colleague(failpoints=trap)
    with suppress(Crashed):
        await recover_due(dying.engine, dying.providers)
    assert trap.sprung
    await zendesk.finish()
    assert await zendesk.office.status(operation) == "succeeded"
    assert (zendesk.there.closes, len(zendesk.there.notes), zendesk.mail.accepted) == (1, 1, 1)
