"""The desk's use cases: the time is read after the lock, and every answer is a typed one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from bot.sandbox.tickets import sandbox_tickets
from executor.domain.ids import TenantId
from executor.domain.new_ticket import LONGEST_BODY, AlreadyImported, Imported, OtherContent
from executor.domain.ticket import ChangeKind, TicketStatus
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine import desk
from executor.store import clock
from executor.store import desk as desk_store
from executor.store.database import Database
from executor.store.desk import Changed, TicketEdit
from tests.support.clock import move_clock

TENANT = TenantId("T1")
UNKNOWN = Refused(Reason.TICKET_UNKNOWN, {"ticket": "9999"})


@pytest.fixture
async def stocked(database: Database) -> Database:
    async with database.transaction() as conn:
        await conn.execute(
            text("INSERT INTO tenants (id, name, timezone) VALUES ('T1', 'One', 'UTC')")
        )
    results = await desk.import_tickets(database, TENANT, sandbox_tickets(datetime.now(UTC)))
    assert all(isinstance(result, Imported) for _, result in results)
    return database


async def test_importing_the_sandbox_twice_changes_nothing_and_names_what_differs(
    stocked: Database,
) -> None:
    again = sandbox_tickets(datetime.now(UTC) + timedelta(days=9))
    again[3] = again[3].model_copy(update={"subject": "Other"})
    results = await desk.import_tickets(stocked, TENANT, again)
    assert len(results) == 12
    assert results.pop(3)[1] == OtherContent("subject")
    assert all(isinstance(result, AlreadyImported) for _, result in results)
    reference = await desk.show_ticket(stocked, TENANT, "4101")
    assert reference is not None
    assert (reference.version, reference.customer_email) == (7, "pat@cust.example")


async def test_a_ticket_lives_through_closing_a_reply_and_reopening(stocked: Database) -> None:
    assert await desk.write_as_agent(
        stocked, TENANT, "4101", author="Mia", body="One more thing."
    ) == Changed(8)
    assert await desk.write_note(stocked, TENANT, "4101", author="Mia", body="Done.") == Changed(9)
    assert await desk.close_ticket(stocked, TENANT, "4101", author="Mia") == Changed(10)
    assert await desk.close_ticket(stocked, TENANT, "4101", author="Mia") == NoChange(
        Reason.TICKET_CLOSED
    )
    assert await desk.write_as_customer(stocked, TENANT, "4101", "It is back.") == Changed(
        11, reopened=True
    )
    assert await desk.reopen_ticket(stocked, TENANT, "4101", author="Mia") == NoChange()
    assert await desk.close_ticket(stocked, TENANT, "4101", author="Mia") == Changed(12)
    assert await desk.reopen_ticket(stocked, TENANT, "4101", author="Mia") == Changed(
        13, reopened=True
    )
    edit = TicketEdit(subject="Charged twice")
    assert await desk.edit_ticket(stocked, TENANT, "4101", edit, author="Mia") == Changed(14)
    ticket = await desk.show_ticket(stocked, TENANT, "4101")
    assert ticket is not None
    assert (ticket.status, ticket.times_opened) == (TicketStatus.OPEN, 3)
    assert (ticket.changes[10].kind, ticket.changes[10].author) == (
        ChangeKind.CUSTOMER_MESSAGE,
        "Pat Neil",
    )
    times = [change.happened_at for change in ticket.changes[7:]]
    assert times == sorted(times)


async def test_an_unknown_ticket_is_a_typed_answer(stocked: Database) -> None:
    assert await desk.show_ticket(stocked, TENANT, "9999") is None
    assert await desk.write_as_customer(stocked, TENANT, "9999", "x") == UNKNOWN
    assert await desk.write_note(stocked, TENANT, "9999", author="Mia", body="x") == UNKNOWN
    assert await desk.close_ticket(stocked, TENANT, "9999", author="Mia") == UNKNOWN
    assert await desk.reopen_ticket(stocked, TENANT, "9999", author="Mia") == UNKNOWN
    edit = TicketEdit(subject="x")
    assert await desk.edit_ticket(stocked, TENANT, "9999", edit, author="Mia") == UNKNOWN


async def test_an_empty_or_endless_message_is_refused(stocked: Database) -> None:
    empty = await desk.write_as_customer(stocked, TENANT, "4101", " \n")
    assert isinstance(empty, Refused)
    assert empty.reason is Reason.CONTENT_INVALID
    long = await desk.write_as_customer(stocked, TENANT, "4101", "x" * (LONGEST_BODY + 1))
    assert isinstance(long, Refused)
    assert long.reason is Reason.CONTENT_TOO_LONG
    ticket = await desk.show_ticket(stocked, TENANT, "4101")
    assert ticket is not None
    assert ticket.version == 7


async def test_finding_is_bounded_and_an_empty_query_finds_all(stocked: Database) -> None:
    assert len(await desk.find_tickets(stocked, TENANT)) == 12
    assert len(await desk.find_tickets(stocked, TENANT, limit=5)) == 5
    assert [t.id for t in await desk.find_tickets(stocked, TENANT, "dashboard robin")] == ["4112"]


async def test_a_change_that_waited_for_a_lock_is_as_young_as_its_end(stocked: Database) -> None:
    async with stocked.transaction() as conn:
        await desk_store.lock_tickets(conn, TENANT, ["4101"])
        writing = asyncio.ensure_future(
            desk.write_as_customer(stocked, TENANT, "4101", "Are you there?")
        )
        async with asyncio.timeout(10), stocked.transaction() as watcher:
            waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while not (await watcher.execute(waiting)).scalar_one():
                await watcher.execute(text("SELECT pg_sleep(0.01)"))
        async with stocked.transaction() as mover:
            await move_clock(mover, timedelta(hours=1))
        released = await clock.now(conn)
    assert await writing == Changed(8)
    ticket = await desk.show_ticket(stocked, TENANT, "4101")
    assert ticket is not None
    assert ticket.updated_at >= released
