"""Operations to race for, made many at a time: proposed by a run, shown, some of them approved."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import text

from executor.adapters.host_clock import mint_id
from executor.domain.approval import Moved, Presented, Vote, decide
from executor.domain.ids import ApprovalId, OperationId, PrincipalId, RunId, TenantId
from executor.engine.click import Click
from executor.engine.converging import Accepted
from executor.engine.start import Started, StartRequest, start
from executor.store import approvals, cards, clock
from tests.support.office import CHANNEL, RENE, RIKO, TENANT, Office, closing

FIRST_TICKET = 20_000
VERSION = 2
"""The version of every ticket on the track."""

_VIEW = hashlib.sha256(b"view").digest()

_COPY_TICKETS = (
    "INSERT INTO desk_events (tenant_id, ticket_id, version, kind, author, body, happened_at) "
    "SELECT tenant_id, CAST(n AS text), version, kind, author, body, happened_at "
    "FROM desk_events, generate_series(CAST(:first AS int), CAST(:last AS int)) AS n "
    "WHERE ticket_id = '4101'",
    "INSERT INTO desk_tickets (tenant_id, id, version, status, subject, customer_name, "
    "    customer_email, language, times_opened, created_at, updated_at) "
    "SELECT tenant_id, CAST(n AS text), version, status, subject, customer_name, "
    "    customer_email, language, times_opened, created_at, updated_at "
    "FROM desk_tickets, generate_series(CAST(:first AS int), CAST(:last AS int)) AS n "
    "WHERE id = '4101'",
)

# As though each card had been drawn again with the time that it may be decided by.
_DRAW = (
    "UPDATE cards SET shown_revision = wanted_revision, due_at = NULL "
    "WHERE subject_id = ANY(:shown)"
)

# Nobody looks at people during a race, however slow the machine is.
_KNOW_EVERYBODY = "UPDATE identity_observations SET observed_at = observed_at + interval '1 hour'"

_READ = (
    "SELECT o.id, o.number, o.run_id, r.number AS run_number, o.ticket_id, a.id AS approval_id, "
    "    a.digest, o.content_revision, o.replaces "
    "FROM operations o JOIN runs r ON r.tenant_id = o.tenant_id AND r.id = o.run_id "
    "JOIN approvals a ON a.tenant_id = o.tenant_id AND a.operation_id = o.id"
)


@dataclass(frozen=True)
class Prize:
    """The operation of one round; ``granted``: it was approved before the race.

    What took its place during the race is a prize as well, with a ``revision`` above 1.
    """

    round: int
    run_id: RunId
    run_number: int
    operation: OperationId
    number: int
    approval: ApprovalId
    digest: bytes
    ticket: str
    granted: bool
    revision: int = 1

    @property
    def key(self) -> tuple[TenantId, OperationId]:
        """The operation's place in every index."""
        return TENANT, self.operation

    def click(self, who: PrincipalId = RENE, vote: Vote = Vote.APPROVE) -> Click:
        """Make a click on the operation's card."""
        return Click(
            TENANT,
            self.operation,
            self.approval,
            self.digest,
            self.revision,
            mint_id(),
            who,
            vote,
            "",
            CHANNEL,
            f"ts-{self.operation}",
            hashlib.sha256(mint_id().bytes).digest(),
            who.rsplit(":", 1)[-1],
        )


async def lay_track(
    office: Office, rounds: int, *, lanes: int, alone: bool, granted_half: bool
) -> list[Prize]:
    """Make one operation a round; those that are raced for side by side are of different runs."""
    numbers = range(FIRST_TICKET, FIRST_TICKET + rounds)
    async with office.database.transaction() as conn:
        for statement in _COPY_TICKETS:
            await conn.execute(text(statement), {"first": numbers[0], "last": numbers[-1]})
        await conn.execute(text(_KNOW_EVERYBODY))
    await _propose(office, [numbers[run::lanes] for run in range(lanes)] if not alone else
                   [numbers[run : run + 1] for run in range(rounds)])  # fmt: skip
    prizes = await _read(office, granted_half=granted_half)
    assert len(prizes) == rounds
    await show(office, prizes)
    await office.decide(*(prize.click() for prize in prizes if prize.granted))
    return prizes


async def revisions_of(office: Office, prizes: Sequence[Prize]) -> Mapping[OperationId, Prize]:
    """Find what took the places of prizes, by the operation whose place it took."""
    by_operation = {prize.operation: prize for prize in prizes}
    async with office.database.transaction() as conn:
        rows = (await conn.execute(text(f"{_READ} WHERE o.replaces IS NOT NULL"))).all()
    found = {
        row.replaces: replace(
            by_operation[row.replaces],
            operation=row.id,
            number=row.number,
            approval=row.approval_id,
            digest=bytes(row.digest),
            granted=False,
            revision=row.content_revision,
        )
        for row in rows
    }
    assert len(found) == len(rows), "something was replaced twice"
    return found


async def _propose(office: Office, of_runs: Sequence[range]) -> None:
    """Let one run each propose to close these tickets, all in one reply."""
    wishes = [StartRequest(TENANT, RIKO, "close", f"race {n}", {}) for n in range(len(of_runs))]
    for tickets, run in zip(of_runs, await start(office.engine, wishes), strict=True):
        assert isinstance(run, Started), run
        claimed = office.claims.get(run.run_id) or await office.claim_run(run.run_id)
        results = await office.ask(run.run_id, claimed, *(closing(str(n)) for n in tickets))
        assert all(isinstance(result, Accepted) for result in results), results


async def show(office: Office, prizes: Sequence[Prize]) -> None:
    """Record in one commit that every card stands in Slack."""
    async with office.database.transaction() as conn:
        consents = await approvals.lock(conn, [prize.key for prize in prizes])
        now = await clock.now(conn)
        await cards.keep_view(conn, TENANT, _VIEW, [], now)
        for prize in prizes:
            await cards.place(
                conn,
                prize.key,
                channel=CHANNEL,
                ts=f"ts-{prize.operation}",
                view_digest=_VIEW,
                content_revision=prize.revision,
            )
        await conn.execute(text(_DRAW), {"shown": [prize.operation for prize in prizes]})
        shown = [decide(consent, Presented(), now=now) for consent in consents.values()]
        await approvals.present(
            conn, [(TENANT, one.approval) for one in shown if isinstance(one, Moved)]
        )


async def _read(office: Office, *, granted_half: bool) -> list[Prize]:
    async with office.database.transaction() as conn:
        rows = (await conn.execute(text(_READ))).all()
    return [
        Prize(
            number,
            row.run_id,
            row.run_number,
            row.id,
            row.number,
            row.approval_id,
            bytes(row.digest),
            row.ticket_id,
            granted_half and number % 2 == 1,
        )
        for number, row in enumerate(sorted(rows, key=lambda row: int(row.ticket_id)))
    ]
