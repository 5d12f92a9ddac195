"""The built-in desk: one version a change, conditional closing, idempotent import."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import DuplicateKey
from executor.domain.ids import OperationId, TenantId
from executor.domain.new_ticket import (
    AlreadyImported,
    Imported,
    MessageKind,
    NewCustomer,
    NewMessage,
    NewTicket,
    OtherContent,
)
from executor.domain.ticket import ChangeKind, TicketStatus
from executor.domain.transition import NoChange, Reason, Refused
from executor.store import desk
from executor.store.database import Database
from executor.store.desk import Changed, Closing, TicketEdit

TENANT = TenantId("T1")
OTHER = TenantId("T2")
NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def new_ticket(ticket_id: str = "4101", **changed: object) -> NewTicket:
    fields: dict[str, object] = {
        "id": ticket_id,
        "subject": "Double charge",
        "customer": NewCustomer(name="Pat Neil", email="pat@cust.example"),
        "language": "en",
        "messages": (
            NewMessage(kind=MessageKind.CUSTOMER, author="Pat Neil", body="Charged 100% twice."),
            NewMessage(kind=MessageKind.AGENT, author="Mia", body="Refunded 40 EUR."),
        ),
    }
    return NewTicket.model_validate(fields | changed)


@pytest.fixture
async def tenants(database: Database) -> Database:
    async with database.transaction() as conn:
        await conn.execute(
            text(
                "INSERT INTO tenants (id, name, timezone) "
                "VALUES ('T1', 'One', 'UTC'), ('T2', 'Two', 'UTC')"
            )
        )
    return database


def closing(version: int, ticket_id: str = "4101", operation: uuid.UUID | None = None) -> Closing:
    asked = OperationId(operation) if operation else None
    return Closing(TENANT, ticket_id, version, "signoff", "closed", asked)


async def import_one(conn: AsyncConnection, ticket: NewTicket | None = None) -> None:
    result = await desk.import_ticket(conn, TENANT, ticket or new_ticket(), NOW)
    assert isinstance(result, Imported)


async def test_an_imported_ticket_has_one_version_a_message(tenants: Database) -> None:
    async with tenants.transaction() as conn:
        assert await desk.import_ticket(conn, TENANT, new_ticket(), NOW) == Imported(2)
        ticket = await desk.read_ticket(conn, TENANT, "4101")
    assert ticket is not None
    assert (ticket.version, ticket.status, ticket.times_opened) == (2, TicketStatus.OPEN, 1)
    assert [(c.version, c.kind, c.body) for c in ticket.changes] == [
        (1, ChangeKind.CUSTOMER_MESSAGE, "Charged 100% twice."),
        (2, ChangeKind.AGENT_MESSAGE, "Refunded 40 EUR."),
    ]
    assert {c.happened_at for c in ticket.changes} == {NOW}


async def test_a_ticket_imported_as_closed_says_so_in_its_last_version(tenants: Database) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn, new_ticket(status="closed"))
        ticket = await desk.read_ticket(conn, TENANT, "4101")
    assert ticket is not None
    assert (ticket.version, ticket.status) == (3, TicketStatus.CLOSED)
    assert ticket.changes[-1].kind is ChangeKind.CLOSED


async def test_importing_the_same_ticket_again_changes_nothing_even_after_it_went_on(
    tenants: Database,
) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn)
    async with tenants.transaction() as conn:
        assert await desk.import_ticket(conn, TENANT, new_ticket(), LATER) == AlreadyImported(2)
        await desk.close_tickets(conn, [closing(2)], LATER)
        edit = TicketEdit(subject="Charged twice")
        await desk.edit_ticket(conn, TENANT, "4101", edit, author="Mia", now=LATER)
    async with tenants.transaction() as conn:
        assert await desk.import_ticket(conn, TENANT, new_ticket(), LATER) == AlreadyImported(4)
        ticket = await desk.read_ticket(conn, TENANT, "4101")
    assert ticket is not None
    assert ticket.subject == "Charged twice"
    assert ticket.status is TicketStatus.CLOSED


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"subject": "Another"}, "subject"),
        ({"language": "nl"}, "language"),
        ({"customer": {"name": "Pat Neil", "email": "sam@cust.example"}}, "customer.email"),
        ({"status": "closed"}, "messages"),
        (
            {"messages": [{"kind": "customer", "author": "Pat Neil", "body": "Other."}]},
            "messages[0]",
        ),
    ],
)
async def test_other_content_under_a_taken_id_is_refused_and_the_field_is_named(
    tenants: Database, changed: dict[str, Any], field: str
) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn)
        before = await desk.read_ticket(conn, TENANT, "4101")
        refused = await desk.import_ticket(conn, TENANT, new_ticket(**changed), LATER)
        assert refused == OtherContent(field)
        assert await desk.read_ticket(conn, TENANT, "4101") == before


async def test_two_imports_of_one_ticket_at_once_make_one_ticket(tenants: Database) -> None:
    async def once() -> object:
        async with tenants.transaction() as conn:
            return await desk.import_ticket(conn, TENANT, new_ticket(), NOW)

    results = await asyncio.gather(*(once() for _ in range(4)))
    assert sorted(type(result).__name__ for result in results) == [
        "AlreadyImported",
        "AlreadyImported",
        "AlreadyImported",
        "Imported",
    ]


async def test_a_ticket_of_another_tenant_is_not_seen_locked_changed_or_closed(
    tenants: Database,
) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn)
        assert await desk.read_ticket(conn, OTHER, "4101") is None
        assert await desk.lock_tickets(conn, OTHER, ["4101"]) == {}
        assert await desk.search_tickets(conn, OTHER, "", 10) == []
        refused = await desk.append_change(
            conn, OTHER, "4101", kind=ChangeKind.NOTE, author="x", body="y", now=LATER
        )
        assert refused == Refused(Reason.TICKET_UNKNOWN, {"ticket": "4101"})
        foreign = Closing(OTHER, "4101", 2, "x", "", None)
        assert await desk.close_tickets(conn, [foreign], LATER) == [None]
        ticket = await desk.read_ticket(conn, TENANT, "4101")
    assert ticket is not None
    assert (ticket.version, ticket.status) == (2, TicketStatus.OPEN)


async def test_a_customers_message_opens_a_closed_ticket_again_and_an_agents_does_not(
    tenants: Database,
) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn)
        assert await desk.close_tickets(conn, [closing(2)], LATER) == [3]
        by_agent = await desk.append_change(
            conn,
            TENANT,
            "4101",
            kind=ChangeKind.AGENT_MESSAGE,
            author="Mia",
            body="A last word.",
            now=LATER,
        )
        assert by_agent == Changed(4, reopened=False)
        closed = (await desk.lock_tickets(conn, TENANT, ["4101"]))["4101"]
        assert (closed.status, closed.times_opened) == (TicketStatus.CLOSED, 1)
        by_customer = await desk.append_change(
            conn,
            TENANT,
            "4101",
            kind=ChangeKind.CUSTOMER_MESSAGE,
            author="Pat Neil",
            body="It is back.",
            now=LATER,
        )
        assert by_customer == Changed(5, reopened=True)
        opened = (await desk.lock_tickets(conn, TENANT, ["4101"]))["4101"]
        assert (opened.status, opened.times_opened) == (TicketStatus.OPEN, 2)
        again = await desk.append_change(
            conn,
            TENANT,
            "4101",
            kind=ChangeKind.CUSTOMER_MESSAGE,
            author="Pat Neil",
            body="Hello?",
            now=LATER,
        )
        assert again == Changed(6, reopened=False)


async def test_text_that_the_database_cannot_hold_is_stored_with_replacements(
    tenants: Database,
) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn)
        await desk.append_change(
            conn,
            TENANT,
            "4101",
            kind=ChangeKind.CUSTOMER_MESSAGE,
            author="Pat\0",
            body="a\0b\ud800",
            now=LATER,
        )
        ticket = await desk.read_ticket(conn, TENANT, "4101")
        assert await desk.search_tickets(conn, TENANT, "\0\ud800", 5) == []
    assert ticket is not None
    assert (ticket.changes[-1].author, ticket.changes[-1].body) == ("Pat\ufffd", "a\ufffdb\ufffd")


async def test_an_edit_says_what_was_and_what_is_and_no_edit_makes_no_version(
    tenants: Database,
) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn)
        same = TicketEdit(subject="Double charge")
        assert (
            await desk.edit_ticket(conn, TENANT, "4101", same, author="Mia", now=LATER)
            == NoChange()
        )
        edit = TicketEdit(customer_email="pat@new.example", language="nl")
        assert await desk.edit_ticket(
            conn, TENANT, "4101", edit, author="Mia", now=LATER
        ) == Changed(3)
        ticket = await desk.read_ticket(conn, TENANT, "4101")
        missing = await desk.edit_ticket(conn, TENANT, "9", edit, author="Mia", now=LATER)
    assert missing == Refused(Reason.TICKET_UNKNOWN, {"ticket": "9"})
    assert ticket is not None
    assert (ticket.customer_email, ticket.language) == ("pat@new.example", "nl")
    assert ticket.changes[-1].kind is ChangeKind.EDITED
    assert ticket.changes[-1].body == (
        "customer_email: pat@cust.example → pat@new.example\nlanguage: en → nl"
    )


async def test_closing_is_conditional_on_version_and_status_item_by_item(
    tenants: Database,
) -> None:
    operation = uuid.uuid4()
    async with tenants.transaction() as conn:
        for ticket_id in ("a", "b", "c"):
            await import_one(conn, new_ticket(ticket_id))
        await import_one(conn, new_ticket("d", status="closed"))
        items = [
            closing(2, "a", operation),
            closing(1, "b"),
            closing(3, "d"),
            closing(2, "unknown"),
            closing(2, "c"),
        ]
        assert await desk.close_tickets(conn, items, LATER) == [3, None, None, None, 3]
        assert await desk.close_tickets(conn, [], LATER) == []
        ticket = await desk.read_ticket(conn, TENANT, "a")
        untouched = await desk.read_ticket(conn, TENANT, "b")
        recorded = await conn.execute(
            text("SELECT operation_id FROM desk_events WHERE kind = 'closed' AND ticket_id = 'a'")
        )
    assert ticket is not None
    assert (ticket.status, ticket.updated_at) == (TicketStatus.CLOSED, LATER)
    assert recorded.scalar_one() == operation
    assert untouched is not None
    assert (untouched.version, untouched.status) == (2, TicketStatus.OPEN)


async def test_a_ticket_named_twice_in_one_batch_is_closed_once(tenants: Database) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn)
        versions = await desk.close_tickets(conn, [closing(2), closing(2)], LATER)
    assert sorted(version or 0 for version in versions) == [0, 3]


async def test_an_operation_cannot_close_a_second_time(tenants: Database) -> None:
    operation = uuid.uuid4()
    async with tenants.transaction() as conn:
        await import_one(conn)
        await desk.close_tickets(conn, [closing(2, operation=operation)], NOW)
        await desk.reopen_ticket(conn, TENANT, "4101", author="Mia", body="", now=NOW)
    with pytest.raises(DuplicateKey) as refused:
        async with tenants.transaction() as conn:
            await desk.close_tickets(conn, [closing(4, operation=operation)], LATER)
    assert refused.value.constraint == "an_operation_closes_once"


async def test_reopening_is_conditional_when_it_names_a_version(tenants: Database) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn)
        assert (
            await desk.reopen_ticket(conn, TENANT, "4101", author="Mia", body="", now=NOW)
            == NoChange()
        )
        await desk.close_tickets(conn, [closing(2)], NOW)
        stale = await desk.reopen_ticket(
            conn, TENANT, "4101", author="Mia", body="", now=NOW, version=2
        )
        assert stale == Refused(Reason.VERSION_CHANGED, {"version": 3, "expected": 2})
        done = await desk.reopen_ticket(
            conn, TENANT, "4101", author="Mia", body="not sent", now=NOW, version=3
        )
        assert done == Changed(4, reopened=True)
        ticket = await desk.read_ticket(conn, TENANT, "4101")
    assert ticket is not None
    assert (ticket.status, ticket.times_opened) == (TicketStatus.OPEN, 2)
    assert ticket.changes[-1].kind is ChangeKind.REOPENED


async def test_a_change_waits_for_the_lock_on_its_ticket(tenants: Database) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn)

    async def customer_writes() -> Changed | Refused:
        async with tenants.transaction() as conn:
            return await desk.append_change(
                conn,
                TENANT,
                "4101",
                kind=ChangeKind.CUSTOMER_MESSAGE,
                author="Pat",
                body="Wait!",
                now=LATER,
            )

    async with tenants.transaction() as conn:
        await desk.lock_tickets(conn, TENANT, ["4101"])
        writing = asyncio.ensure_future(customer_writes())
        async with tenants.transaction() as watcher:
            await _until(
                watcher, "SELECT count(*) FROM pg_locks WHERE NOT granted", lambda n: n > 0
            )
        assert await desk.close_tickets(conn, [closing(2)], NOW) == [3]
    assert await writing == Changed(4, reopened=True)


async def _until(conn: AsyncConnection, query: str, enough: Callable[[int], bool]) -> None:
    async with asyncio.timeout(10):
        while not enough((await conn.execute(text(query))).scalar_one()):
            await conn.execute(text("SELECT pg_sleep(0.01)"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["b", "a", "z"]),
        ("double", ["a"]),
        ("PAT refunded", ["b", "a", "z"]),
        ("100% pat", ["b", "a", "z"]),
        ("100_", []),
        ("refunded nothing", []),
        ("b", ["b", "a"]),
        ("beta", ["b"]),
    ],
)
async def test_a_search_finds_tickets_that_hold_every_word_open_and_newest_first(
    tenants: Database, query: str, found: list[str]
) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn, new_ticket("a"))
        await desk.import_ticket(conn, TENANT, new_ticket("b", subject="Beta"), LATER)
        closed = new_ticket("z", subject="Gone", status="closed")
        await desk.import_ticket(conn, TENANT, closed, LATER)
        results = await desk.search_tickets(conn, TENANT, query, 10)
        first = await desk.search_tickets(conn, TENANT, query, 1)
    assert [ticket.id for ticket in results] == found
    assert [ticket.id for ticket in first] == found[:1]


async def test_the_database_refuses_a_version_without_its_event(tenants: Database) -> None:
    async with tenants.transaction() as conn:
        await import_one(conn)
    with pytest.raises(Exception, match="every_version_says_what_changed"):
        async with tenants.transaction() as conn:
            await conn.execute(text("UPDATE desk_tickets SET version = version + 1"))
