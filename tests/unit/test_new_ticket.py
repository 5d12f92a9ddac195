"""The import format of tickets: what is wrong is named by line and field."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.sandbox.tickets import AGE_OF_THE_NEWEST, sandbox_tickets
from executor.domain.errors import InvalidContent
from executor.domain.new_ticket import parse_tickets
from executor.domain.ticket import ChangeKind, TicketStatus

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


def line(**changed: Any) -> str:
    ticket = {
        "id": "4101",
        "subject": "Double charge",
        "language": "en",
        "customer": {"name": "Pat", "email": "pat@cust.example"},
        "messages": [{"kind": "customer", "author": "Pat", "body": "Hello"}],
    }
    return json.dumps(ticket | changed)


def test_a_line_is_a_ticket_and_empty_lines_are_skipped() -> None:
    tickets = parse_tickets(["", line(), "  \n", line(id="4102", status="closed")])
    assert [ticket.id for ticket in tickets] == ["4101", "4102"]
    assert tickets[1].status is TicketStatus.CLOSED


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"id": "has space"}, "id"),
        ({"id": 4101}, "id"),
        ({"subject": "two\nlines"}, "subject"),
        ({"language": "english please"}, "language"),
        ({"customer": {"name": "Pat", "email": "nobody"}}, "customer.email"),
        (
            {"customer": {"name": "Pat", "email": "a@x.example\r\nBcc: b@x.example"}},
            "customer.email",
        ),
        ({"messages": []}, "messages"),
        ({"messages": [{"kind": "boss", "author": "Pat", "body": "x"}]}, "messages[0].kind"),
        (
            {
                "messages": [
                    {"kind": "note", "author": "x", "body": "y", "at": "2025-01-01T10:00:00"}
                ]
            },
            "messages[0].at",
        ),
        ({"priority": "high"}, "priority"),
    ],
)
def test_a_wrong_line_is_named_with_its_field(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidContent) as refused:
        parse_tickets([line(id="1"), "", line(**changed)])
    assert refused.value.field == f"line 3, {field}"
    assert refused.value.problem


@pytest.mark.parametrize("broken", ["{", "[]", "not json", '"\ud800"', '{"id": "\ud800"}'])
def test_a_line_that_is_no_ticket_at_all_is_named(broken: str) -> None:
    with pytest.raises(InvalidContent) as refused:
        parse_tickets([broken])
    assert refused.value.field.startswith("line 1")


def test_an_id_that_occurs_twice_is_refused_and_both_lines_are_named() -> None:
    with pytest.raises(InvalidContent, match="stands on line 1 already") as refused:
        parse_tickets([line(), line(subject="Other")])
    assert refused.value.field == "line 2, id"


def test_an_idn_address_is_kept_as_people_read_it() -> None:
    [ticket] = parse_tickets([line(customer={"name": "Ola", "email": "ola@bücher.example"})])
    assert ticket.customer.email == "ola@bücher.example"


def test_the_sandbox_has_the_reference_ticket_and_recent_times() -> None:
    tickets = {ticket.id: ticket for ticket in sandbox_tickets(NOW)}
    assert list(tickets) == [str(number) for number in range(4101, 4113)]
    reference = tickets["4101"]
    assert (reference.customer.email, reference.language) == ("pat@cust.example", "en")
    assert len(reference.changes(NOW)) == 7
    times = [change.happened_at for ticket in tickets.values() for change in ticket.changes(NOW)]
    assert max(times) == NOW - AGE_OF_THE_NEWEST
    assert {ticket.language for ticket in tickets.values()} == {
        *("en", "nl", "de", "fr", "es", "it", "pt", "ja", "ar", "pl")
    }


def test_the_sandbox_has_one_closed_ticket_and_one_that_means_harm() -> None:
    tickets = {ticket.id: ticket for ticket in sandbox_tickets(NOW)}
    closed = [ticket for ticket in tickets.values() if ticket.status is TicketStatus.CLOSED]
    assert [ticket.id for ticket in closed] == ["4107"]
    assert closed[0].changes(NOW)[-1].kind is ChangeKind.CLOSED
    hostile = tickets["4111"].model_dump_json()
    assert "attacker@evil.example" in hostile
    assert "<!channel>" in hostile
    assert "\u202e" in hostile
