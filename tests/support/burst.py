"""Many operations at once, as a run that proposes them in one reply makes them: in two commits."""

from __future__ import annotations

import json

from sqlalchemy import text

from executor.domain.closing import ProposeClosing
from executor.domain.identity import Identity
from executor.domain.ids import slack_principal
from executor.domain.new_ticket import NewTicket
from executor.engine.accept import Asked, accept
from executor.engine.claims import claim_runs
from executor.engine.closure_email import ClosureEmails
from executor.engine.converging import Accepted
from executor.engine.providers import Providers
from executor.engine.start import Started, StartRequest, start
from executor.store import clock, desk
from executor.store.people import put_identity
from tests.support.bot_harness import REQUESTER, Harness
from tests.support.fake_mail import FakeMail

FIRST_TICKET = 6001
_REPLY = text(
    "INSERT INTO steps (tenant_id, run_id, number, kind, content, recorded_at) "
    "VALUES (:t, :r, 1, 'model', CAST(:c AS jsonb), signoff_clock())"
)


async def propose_many(h: Harness, count: int, *, first: int = FIRST_TICKET) -> list[int]:
    """Let one run propose to close so many new tickets; returns the operations' numbers in order.

    Nobody drives the run: no executor may be at work.
    """
    tickets = [str(first + number) for number in range(count)]
    tenant, engine = h.policy.tenant_id, h.engine
    async with engine.database.transaction() as conn:
        now = await clock.now(conn)
        for ticket in tickets:
            await desk.import_ticket(conn, tenant, _ticket(ticket), now)
        requester = slack_principal(tenant, REQUESTER)
        member = Identity(tenant, False, False, False, False, observed_at=now)
        await put_identity(conn, tenant, requester, member)
    [started] = await start(engine, [StartRequest(tenant, requester, "close all", tickets[0], {})])
    assert isinstance(started, Started), started
    [claimed] = await claim_runs(engine, "nobody", 1)
    calls = [{"id": "call_0", "name": "propose_closing", "arguments": {}}] * count
    async with engine.database.transaction() as conn:
        said = json.dumps({"text": "", "tool_calls": calls})
        await conn.execute(_REPLY, {"t": tenant, "r": started.run_id, "c": said})
    results = await accept(
        engine,
        Providers(FakeMail()),
        ClosureEmails(),
        (tenant, started.run_id),
        claimed.lease.epoch,
        [Asked(1, place, _closing(ticket), 2) for place, ticket in enumerate(tickets)],
        2,
    )
    made = [result.operation_id for result in results if isinstance(result, Accepted)]
    assert len(made) == count, results
    return [row.number for row in await h.rows("SELECT number FROM operations ORDER BY number")]


def _ticket(number: str) -> NewTicket:
    return NewTicket.model_validate(
        {
            "id": number,
            "subject": f"Invoice {number}",
            "language": "en",
            "customer": {"name": "Pat Doe", "email": f"pat{number}@cust.example"},
            "messages": [
                {"kind": "customer", "author": "Pat Doe", "body": "It is wrong."},
                {"kind": "agent", "author": "Ann", "body": "It is corrected now."},
            ],
        }
    )


def _closing(ticket: str) -> ProposeClosing:
    return ProposeClosing.model_validate(
        {
            "ticket_id": ticket,
            "language": "en",
            "subject": f"Ticket {ticket} closed",
            "message": "Your invoice is corrected.",
        }
    )
