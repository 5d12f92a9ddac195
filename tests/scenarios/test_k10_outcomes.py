"""K10, what each answer and each loss proves; B123 and B127 are in test_k10_email_delivery.py."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from bot.sandbox import mailbox_faults
from bot.sandbox.mailbox_faults import Point, Reply
from bot.sandbox.provider_faults import Fault, PlannedFault
from executor.adapters.models.scripted import ScriptedModel
from executor.domain.closing import ProposeClosing, RenderedEmail
from executor.domain.ids import OperationId
from executor.domain.ticket import Ticket
from executor.domain.transition import Reason
from executor.engine.closure_email import ClosureEmails
from executor.engine.driver import Crew
from executor.engine.ports import OutgoingMail
from executor.engine.worker import Worker, WorkerTerms
from executor.store.database import Database
from executor.store.wakeups import listening
from tests.support.failpoints import Crashed, Trap
from tests.support.mail_doubles import postmark, resend, smtp
from tests.support.office import Office, closing
from tests.support.waiting import another_pool, until_true
from tests.support.working import Working

ACCEPTED_503 = PlannedFault(Fault.ERROR, after_accepting=True, status=503)
ACCEPTED_504 = PlannedFault(Fault.PROXY_PAGE, after_accepting=True, status=504)
LOST_504 = PlannedFault(Fault.PROXY_PAGE, status=504)
SILENT = PlannedFault(Fault.HANG, after_accepting=True)


async def _approved(office: Office, proposal: ProposeClosing) -> OperationId:
    """Walk to an approved operation of one proposal."""
    [operation] = await (await Working.propose(office, proposal)).operations()
    await office.show()
    await office.click(operation)
    return operation


async def test_b124_a_503_after_accepting_is_one_request_and_is_found_by_a_search(
    office: Office,
) -> None:
    async with postmark(office) as (double, doubt):
        double.fail(ACCEPTED_503)
        claimed = await doubt.claimed()
        await doubt.execute(claimed)
        operation = claimed.claim.key[1]
        assert double.faults.calls == 1
        assert await office.status(operation) == "unknown"
        await doubt.until_nothing_is_due()
        assert await office.status(operation) == "succeeded"
        assert (double.faults.calls, double.accepted) == (1, 1)


async def test_b124_a_provider_with_keys_is_asked_again_under_the_same_key(office: Office) -> None:
    async with resend(office) as (double, doubt):
        double.fail(ACCEPTED_503, call=1)
        claimed = await doubt.claimed()
        await doubt.execute(claimed)
        assert double.faults.calls == 1
        assert await office.status(claimed.claim.key[1]) == "unknown"
        await doubt.until_nothing_is_due()
        assert await office.status(claimed.claim.key[1]) == "succeeded"
        assert double.accepted == 1


@pytest.mark.parametrize(
    ("fault", "bound", "ending", "accepted"),
    [
        (ACCEPTED_504, 20.0, "succeeded", 1),
        (SILENT, 0.3, "succeeded", 1),
        (LOST_504, 20.0, "unknown", 0),
    ],
)
async def test_b125_a_gateway_or_read_timeout_is_unknown_until_it_is_found(
    office: Office, fault: PlannedFault, bound: float, ending: str, accepted: int
) -> None:
    async with postmark(office, bound=bound) as (double, doubt):
        double.fail(fault, call=1)
        claimed = await doubt.claimed()
        await doubt.execute(claimed)
        operation = claimed.claim.key[1]
        assert await office.status(operation) == "unknown"
        await doubt.until_nothing_is_due()
        assert await office.status(operation) == ending
        assert (double.accepted, double.faults.calls) == (accepted, 1)
        asked = await doubt.asked(operation)
        assert (asked is None) == (ending == "succeeded"), asked


@dataclass
class _ResetAtTheReport:
    """The database hangs up on a worker that is about to commit what came of its call."""

    office: Office
    name: str
    dies: bool
    resets: int = 0
    seen: list[str] = field(default_factory=list)

    async def reach(self, name: str) -> None:
        if name != "report.before" or self.resets == 2:
            return
        self.resets += 1
        await self.office.rows(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = :n AND state = 'idle in transaction'",
            n=self.name,
        )
        self.seen += [s for (s,) in await self.office.rows("SELECT status FROM operations")]
        if self.dies:
            raise Crashed(name)


@pytest.mark.parametrize(("dies", "ending"), [(False, "succeeded"), (True, "unknown")])
async def test_b128_a_success_that_could_not_be_stored_is_never_a_failure(
    office: Office, database_url: str, dies: bool, ending: str
) -> None:
    async with smtp(office) as (double, doubt), another_pool(database_url) as pool:
        claimed = await doubt.claimed()
        reset = _ResetAtTheReport(office, "colleague", dies)
        with suppress(Crashed):
            await doubt.execute(claimed, office.colleague(pool, failpoints=reset))
        assert reset.seen == ["executing"] * reset.resets != []
        await doubt.until_nothing_is_due()
        assert await office.status(claimed.claim.key[1]) == ending
        assert (double.accepted, double.conversations) == (1, 1)
        events = await office.rows("SELECT target FROM journal WHERE machine = 'operation'")
        assert ("failed",) not in events


@pytest.mark.parametrize(
    ("name", "fault", "ending"),
    [
        ("429", PlannedFault(Fault.RATE_LIMIT), "partial"),
        ("refused", PlannedFault(Fault.REFUSE), "partial"),
        ("500", PlannedFault(Fault.ERROR), "unknown"),
    ],
)
async def test_b129_nothing_is_done_without_an_acceptance(
    office: Office, name: str, fault: PlannedFault, ending: str
) -> None:
    """The ticket is closed before the mail leaves (design.md, 6), so it does not stay open."""
    async with postmark(office) as (double, doubt):
        double.fail(fault)
        claimed = await doubt.claimed()
        await doubt.execute(claimed)
        operation = claimed.claim.key[1]
        first = await office.status(operation)
        assert first == ("unknown" if name == "500" else "executing")
        await doubt.until_nothing_is_due()
        assert (await office.status(operation), double.accepted) == (ending, 0)
        tried = [status for status, _ in await doubt.sent(operation)]
        assert len(tried) == (1 if name == "500" else office.engine.durations.most_attempts)


async def test_b129_a_call_that_was_cancelled_is_unknown(office: Office) -> None:
    async with postmark(office) as (double, doubt):
        double.fail(PlannedFault(Fault.HANG), call=1)
        claimed = await doubt.claimed()
        calling = asyncio.create_task(doubt.execute(claimed))
        await double.faults.wait_for_hang()
        calling.cancel()
        await asyncio.wait({calling})
        await doubt.until_nothing_is_due()
        assert await office.status(claimed.claim.key[1]) == "unknown"
        assert (double.accepted, double.faults.calls) == (0, 1)


async def test_b130_a_conflict_in_progress_is_asked_again_until_it_is_known(
    office: Office,
) -> None:
    async with resend(office, bound=0.5) as (double, doubt):
        double.fail(PlannedFault(Fault.HANG), call=1)
        claimed = await doubt.claimed()
        operation = claimed.claim.key[1]
        await doubt.execute(claimed)
        await doubt.pass_time(6.0)
        await doubt.work()
        # The first request is still in progress: 409 is neither done nor failed.
        assert double.faults.calls == 2
        assert (await office.status(operation), double.accepted) == ("unknown", 0)
        double.faults.release()
        await double.accepted_mails.wait_for(lambda mails: mails.accepted == 1)
        await doubt.until_nothing_is_due()
        assert (await office.status(operation), double.accepted) == ("succeeded", 1)


async def test_b130_a_key_that_was_used_with_other_content_stops_with_an_alert(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    async with resend(office) as (double, doubt):
        claimed = await doubt.claimed()
        operation = claimed.claim.key[1]
        [(key, payload)] = await office.rows(
            "SELECT idempotency_key, payload FROM effects WHERE kind = 'email.send'"
        )
        other = payload.replace(b"corrected", b"refunded")
        moment = (await office.rows("SELECT signoff_clock()"))[0][0]
        mail = OutgoingMail("support@acme.example", ("pat@cust.example",), other, moment, key, "x")
        await doubt.mail.send(mail)
        with caplog.at_level(logging.ERROR):
            await doubt.execute(claimed)
        assert caplog.records
        await doubt.until_nothing_is_due()
        assert await office.status(operation) == "unknown"
        assert await doubt.asked(operation) == "the provider has seen this key with other bytes"
        assert [raw.raw for raw in double.mails] == [other]


async def test_b132_several_recipients_get_one_mail_or_none_and_nobody_gets_it_again(
    office: Office,
) -> None:
    """One request carries the mail to all recipients, so no two of them can fare differently."""
    async with smtp(office) as (double, doubt):
        operation = await _approved(office, closing(cc=["sam@cust.example"]))
        claimed = await office.claim_operation(operation)
        dying = office.colleague(failpoints=Trap("call.after"))
        with pytest.raises(Crashed):
            await doubt.execute(claimed, dying)
        await doubt.until_nothing_is_due()
        assert await office.status(operation) == "unknown"
        [mail] = double.mails
        assert mail.envelope_to == ("pat@cust.example", "sam@cust.example")
        assert double.conversations == 1


async def test_b133_one_refused_recipient_keeps_the_mail_from_all_and_is_named(
    office: Office,
) -> None:
    """The ticket is closed before the mail leaves (design.md, 6); the record says so, not less."""
    async with smtp(office) as (double, doubt):
        refusal = Reply(550, "5.1.1 no such user")
        double.fail(mailbox_faults.Fault(Point.RCPT, refusal, recipient="gone@x.example"))
        proposal = closing(to=["good@x.example", "gone@x.example"])
        operation = await _approved(office, proposal)
        await doubt.execute(await office.claim_operation(operation))
        await doubt.until_nothing_is_due()
        assert await office.status(operation) == "partial"
        assert double.accepted == 0
        [(evidence,)] = await office.rows("SELECT evidence FROM attempts")
        assert evidence["problem"] == "refused: gone@x.example"
        assert [(r["address"], r["code"]) for r in evidence["refused"]] == [("gone@x.example", 550)]


async def test_b136_a_retry_attempts_only_what_is_not_done(office: Office) -> None:
    async with smtp(office) as (double, doubt):
        await office.import_ticket("4103")
        proposals = [closing(ticket) for ticket in ("4101", "4102", "4103")]
        first, second, third = await (await Working.propose(office, *proposals)).operations()
        await office.show()
        for operation in (first, second):
            await office.click(operation)
            await doubt.execute(await office.claim_operation(operation))
        await office.click(third)
        failing = office.colleague(failpoints=Trap("open.before"))
        with pytest.raises(Crashed):
            await doubt.execute(await office.claim_operation(third), failing)
        assert double.accepted == 2
        await doubt.pass_time(31)
        await doubt.until_nothing_is_due()
        assert [await office.status(o) for o in (first, second, third)] == ["succeeded"] * 3
        attempts = await office.rows(
            "SELECT operation_id, count(*) FROM attempts GROUP BY 1 ORDER BY min(opened_at)"
        )
        assert attempts == [(first, 1), (second, 1), (third, 1)]
        subjects = [mail.parsed["Subject"] for mail in double.mails]
        assert subjects == [f"Ticket {ticket} closed" for ticket in ("4101", "4102", "4103")]


class _BrokenFor4101(ClosureEmails):
    """Templates that break on one ticket, with an error that nobody has foreseen."""

    def render(self, ticket: Ticket, proposal: ProposeClosing, signature: str) -> RenderedEmail:
        if ticket.id == "4101":
            raise ZeroDivisionError("a broken template")
        return super().render(ticket, proposal, signature)


@asynccontextmanager
async def _at_work(office: Office, database: Database) -> AsyncIterator[None]:
    crew = Crew(ScriptedModel(), office.providers, _BrokenFor4101())
    terms = WorkerTerms(most_takeovers=2, poll_seconds=0.05)
    async with listening(database) as listener:
        worker = Worker(office.engine, crew, listener, "w1", terms)
        working = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.stop()
            await working


async def test_b138_one_bad_mail_does_not_stop_the_others(office: Office) -> None:
    tickets = ("4101", "4102", "4103")
    await office.import_ticket("4103")
    runs = [await office.start_run(f"close {ticket}") for ticket in tickets]
    async with _at_work(office, office.database):
        await until_true(office.database, "SELECT count(*) = 2 FROM operations")
        await office.show()
        operations = [id_ for (id_,) in await office.rows("SELECT id FROM operations")]
        for operation in operations:
            await office.click(OperationId(operation))
        await until_true(
            office.database,
            "SELECT count(*) = 2 FROM operations WHERE status = 'succeeded'",
        )
        await until_true(
            office.database, "SELECT count(*) = 2 FROM runs WHERE status = 'succeeded'"
        )
        for _ in range(3):
            await office.later(seconds=31)
            await until_true(
                office.database,
                "SELECT NOT EXISTS (SELECT FROM runs WHERE lease_until <= signoff_clock())",
            )
        await until_true(office.database, "SELECT bool_and(ended_at IS NOT NULL) FROM runs")
    assert await office.run_status(runs[0]) == "failed"
    [(reason,)] = await office.rows("SELECT reason FROM runs WHERE id = :r", r=runs[0])
    assert reason == Reason.KEEPS_FAILING
    assert office.mail.accepted == 2
    replies = await office.rows(
        "SELECT count(*) FROM steps WHERE run_id = :r AND kind = 'model'", r=runs[0]
    )
    assert replies == [(2,)], "what was recorded before the failure is not asked for again"
