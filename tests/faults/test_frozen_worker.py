"""A worker that is frozen by SIGSTOP between its claim and its first byte, and woken too late.

Wherever a check is still ahead of it, it sends nothing, whatever the provider; and each check is
shown to matter by taking it away. After its very last check it may still send, and what that comes
to is what ``docs/guarantees.md`` says. Meanwhile another worker takes over, and recovery does all
that it ever does.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.sandbox.clock import VirtualClock
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.resend_double import KEY_SECONDS, ResendDouble
from executor.adapters.host_clock import mint_id
from executor.adapters.mail.provider_choice import mail_from
from executor.domain.effect import Capability
from executor.domain.ids import AttemptId, OperationId
from executor.engine.settling import settle
from executor.engine.word import Given, Said, Word
from tests.support.freezable_worker import (
    BOOTTIME_DEADLINE,
    DATABASE_DEADLINE,
    LEASE,
    LOOK_AFTER,
    LOOK_BEFORE,
    OWNER,
    STATUS,
    TRUST,
    WALL_DEADLINE,
)
from tests.support.freezing import FreezableWorker, MovedTogether
from tests.support.office import CHANNEL, RENE, SHORT, TENANT, Office

PROVIDERS = ("resend", "postmark", "smtp")
CLAIM_BEFORE, CLAIM_AFTER = "claim_operation.before", "claim_operation.after"
OPEN_BEFORE, OPEN_AFTER = "open.before", "open.after"
AFTER_EVERY_CHECK = "call.before"

ITS_DEADLINE, ITS_LEASE = "past its deadline", "past its lease"
EVERYTHING = "past everything that recovery waits for"
SECONDS = {
    ITS_DEADLINE: SHORT.first_byte_seconds + SHORT.clock_allowance_seconds + 1,
    ITS_LEASE: SHORT.lease.ttl_seconds + 0.5,
}
DEADLINE = (DATABASE_DEADLINE, BOOTTIME_DEADLINE, WALL_DEADLINE)


@dataclass(frozen=True)
class Case:
    """Where an operation's worker is frozen, what it lacks, and how often it sends when woken."""

    at: str
    without: tuple[str, ...] = ()
    sends: int = 0


# Before the opening there is no attempt whose deadline could pass.
AT_THE_CLAIM = [(CLAIM_BEFORE, ITS_LEASE), (CLAIM_BEFORE, EVERYTHING), (CLAIM_AFTER, ITS_LEASE)]
BEFORE_THE_LAST_CHECK = [Case(at) for at in (OPEN_BEFORE, OPEN_AFTER, LOOK_BEFORE, LOOK_AFTER)]
WITHOUT_SOME_CHECK = {
    ITS_DEADLINE: [
        # The lease is still good: only the deadline stops it, on any of its three clocks.
        Case(LOOK_BEFORE, DEADLINE, sends=1),
        Case(LOOK_BEFORE, (BOOTTIME_DEADLINE, WALL_DEADLINE)),
        Case(LOOK_BEFORE, (DATABASE_DEADLINE, WALL_DEADLINE)),
        Case(LOOK_BEFORE, (DATABASE_DEADLINE, BOOTTIME_DEADLINE)),
        # The database had answered before it froze, so only this host's clocks can tell.
        Case(LOOK_AFTER, (WALL_DEADLINE,)),
        Case(LOOK_AFTER, (BOOTTIME_DEADLINE,)),
        Case(LOOK_AFTER, (BOOTTIME_DEADLINE, WALL_DEADLINE), sends=1),
    ],
    ITS_LEASE: [
        Case(LOOK_BEFORE, (*DEADLINE, TRUST)),
        Case(LOOK_BEFORE, (*DEADLINE, TRUST, LEASE), sends=1),
    ],
    EVERYTHING: [
        # The trust window alone spares late work, and so does the deadline alone.
        Case(LOOK_AFTER, DEADLINE),
        Case(LOOK_AFTER, (TRUST,)),
        Case(LOOK_AFTER, (*DEADLINE, TRUST), sends=1),
        Case(OPEN_AFTER, (*DEADLINE, TRUST, LEASE)),
        Case(OPEN_AFTER, (*DEADLINE, TRUST, LEASE, STATUS), sends=1),
    ],
}


@dataclass
class Frost:
    """One provider, an office, and a worker's process that can be frozen."""

    double: ResendDouble | PostmarkDouble | Mailbox
    doubt: MovedTogether
    worker: FreezableWorker
    ticket: int = 6000

    @property
    def requests(self) -> int:
        """How often anybody asked the provider to send."""
        if isinstance(self.double, Mailbox):
            return self.double.conversations
        return self.double.faults.calls

    async def accepted(self, operation: OperationId) -> int:
        """Count the mails of one operation that the provider took."""
        [(ticket,)] = await self.doubt.office.rows(
            "SELECT ticket_id FROM operations WHERE id = :o", o=operation
        )
        subject = f"Ticket {ticket} closed".encode()
        return sum(subject in mail.raw for mail in self.double.mails)

    async def approved(self, count: int) -> list[OperationId]:
        """Walk to new operations that are due."""
        first, self.ticket = self.ticket, self.ticket + count
        return await self.doubt.office.approved_many(count, first=first)

    async def freeze(self, cases: Sequence[Case]) -> list[OperationId]:
        """Let the worker take new operations as far as their points, and freeze it there."""
        operations = await self.approved(len(cases))
        points = {
            str(operation): (case.at, case.without)
            for operation, case in zip(operations, cases, strict=True)
        }
        await self.worker.work_until_frozen(points)
        return operations

    async def thaw(self, operations: Sequence[OperationId]) -> list[int]:
        """Wake the worker and count at the provider and by operation what it then asked to send."""
        before = self.requests
        sent = await self.worker.wake()
        assert self.requests - before == sent.total()
        return [sent[str(operation)] for operation in operations]

    async def pass_time(self, past: str) -> None:
        """Let everybody else go on past something while the worker is frozen."""
        if past is not EVERYTHING:
            await self.doubt.pass_time(SECONDS[past])
            await self.doubt.work()
            return
        await self.end_its_transactions()
        await self.doubt.pass_time(SECONDS[ITS_LEASE])
        await self.doubt.until_nothing_is_due()

    async def end_its_transactions(self) -> None:
        """End the transactions that it froze in, as PostgreSQL does with an idle one."""
        await self.doubt.office.rows(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = :name AND state = 'idle in transaction'",
            name=OWNER,
        )

    async def says(self, operation: OperationId, said: Said) -> None:
        """Let a reviewer say what became of the attempt that the card shows."""
        [(attempt,)] = await self.doubt.office.rows(
            "SELECT id FROM attempts WHERE operation_id = :o", o=operation
        )
        word = Word(
            TENANT,
            operation,
            AttemptId(attempt),
            said,
            RENE,
            "",
            CHANNEL,
            f"ts-{operation}",
            hashlib.sha256(mint_id().bytes).digest(),
            RENE.rsplit(":", 1)[-1],
        )
        [result] = await settle(self.doubt.office.engine, [word])
        assert isinstance(result, Given), result


@asynccontextmanager
async def frozen(
    provider: str, office: Office, database_url: str, folder: Path
) -> AsyncIterator[Frost]:
    [(now,)] = await office.rows("SELECT extract(epoch FROM signoff_clock())")
    clock = VirtualClock(float(now))
    double: ResendDouble | PostmarkDouble | Mailbox
    match provider:
        case "resend":
            double = ResendDouble(clock=clock)
        case "postmark":
            double = PostmarkDouble(clock=clock, search_lag_seconds=200.0)
        case _:
            double = Mailbox()
    async with double:
        settings = {
            "resend": {"RESEND_API_KEY": "re_sandbox", "RESEND_API_URL": double.url},
            "postmark": {"POSTMARK_SERVER_TOKEN": "sandbox-token", "POSTMARK_API_URL": double.url},
            "smtp": {"SMTP_URL": double.url},
        }[provider] | {
            "SIGNOFF_MAIL_LONGEST_REQUEST_SECONDS": "60",
            "SIGNOFF_SMTP_LONGEST_REQUEST_SECONDS": "60",
        }
        clock_file = folder / "clock"
        clock_file.write_text("0")
        environment = {
            "DATABASE_URL": database_url,
            "FREEZABLE_CLOCK": str(clock_file),
            **settings,
        }
        doubt = MovedTogether(office, mail_from(settings), clock, clock_file=clock_file)
        async with FreezableWorker.running(environment) as worker:
            yield Frost(double, doubt, worker)


async def _ends_truly(frost: Frost, operation: OperationId, name: str) -> None:
    """Assert that one mail at most was accepted, and that the record says which it was."""
    accepted = await frost.accepted(operation)
    status = await frost.doubt.office.status(operation)
    assert (accepted, status) in [(1, "succeeded"), (0, "partial")], name


async def _frozen_at_the_claim(frost: Frost) -> None:
    for point, past in AT_THE_CLAIM:
        name = f"{point}, {past}"
        [operation] = await frost.approved(1)
        await frost.worker.work_until_frozen({"claim": (point, ())})
        await frost.pass_time(past)
        assert await frost.thaw([operation]) == [0], name
        await frost.doubt.until_nothing_is_due()
        assert await frost.accepted(operation) == 1, name
        await _ends_truly(frost, operation, name)


async def _frozen(frost: Frost, cases: Sequence[Case], past: str) -> list[OperationId]:
    operations = await frost.freeze(cases)
    await frost.pass_time(past)
    sent = await frost.thaw(operations)
    found = [(case, times) for case, times in zip(cases, sent, strict=True)]
    assert found == [(case, case.sends) for case in cases], past
    await frost.doubt.until_nothing_is_due()
    for case, operation in zip(cases, operations, strict=True):
        await _ends_truly(frost, operation, f"{case}, {past}")
    return operations


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_frozen_worker_sends_nothing_while_any_check_is_ahead_of_it(
    provider: str, office: Office, database_url: str, tmp_path: Path
) -> None:
    async with frozen(provider, office, database_url, tmp_path) as frost:
        await _frozen_at_the_claim(frost)
        for past in (ITS_DEADLINE, ITS_LEASE, EVERYTHING):
            await _frozen(frost, BEFORE_THE_LAST_CHECK, past)
        await _frozen_after_every_check(frost)


async def _frozen_after_every_check(frost: Frost) -> None:
    """It may still send then: what that comes to is what the guarantees say."""
    last = Case(AFTER_EVERY_CHECK, sends=1)
    if frost.doubt.mail.capability is Capability.KEYED:
        [operation] = await _frozen(frost, [last], EVERYTHING)
        # The other worker's repeat was the first to arrive, and its own was dropped.
        assert await frost.doubt.sent(operation) == [("applied", 0), ("applied", 0)]
        [operation] = await frost.freeze([last])
        await frost.pass_time(EVERYTHING)
        await frost.doubt.pass_time(KEY_SECONDS)
        assert await frost.thaw([operation]) == [1]
        assert await frost.accepted(operation) == 2
        return
    silent, denied, again = await frost.freeze([last, last, last])
    await frost.pass_time(EVERYTHING)
    assert [await frost.accepted(operation) for operation in (silent, denied, again)] == [0, 0, 0]
    await frost.says(denied, Said.NOT_SENT)
    await frost.says(again, Said.SEND_AGAIN)
    await frost.doubt.until_nothing_is_due()
    assert await frost.thaw([silent, denied, again]) == [1, 1, 1]
    # Nobody else has sent unless a person said so.
    assert [await frost.accepted(operation) for operation in (silent, denied, again)] == [1, 1, 2]
    for operation in (silent, denied, again):
        assert await frost.doubt.office.status(operation) == "succeeded"


async def test_each_check_before_the_first_byte_stops_what_no_other_one_stops(
    office: Office, database_url: str, tmp_path: Path
) -> None:
    async with frozen("smtp", office, database_url, tmp_path) as frost:
        # Without its trust window the opening finds another epoch under its lock.
        [operation] = await frost.approved(1)
        await frost.worker.work_until_frozen({"claim": (CLAIM_AFTER, (TRUST,))})
        await frost.pass_time(ITS_LEASE)
        assert await frost.thaw([operation]) == [0]
        for past, cases in WITHOUT_SOME_CHECK.items():
            await _frozen(frost, cases, past)
