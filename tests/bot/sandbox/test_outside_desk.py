"""The demo's outside desks: the sandbox's tickets, the customer's hands, and a restart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.sandbox.demo_desk import DemoDesk
from bot.sandbox.demo_faults import DeskKind
from bot.sandbox.outside_desk import outside_desk
from bot.sandbox.tickets import sandbox_tickets
from executor.domain.ticket import TicketStatus

NOW = datetime.now(UTC)
OUTSIDE = (DeskKind.ZENDESK, DeskKind.GITHUB)


@pytest.fixture(params=OUTSIDE)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> DemoDesk:
    return outside_desk(request.param, tmp_path, 0)


async def test_a_desk_holds_the_sandboxs_tickets(desk: DemoDesk) -> None:
    tickets = sandbox_tickets(NOW)
    await desk.put(tickets)
    held = await desk.tickets()
    assert [(t.id, t.status, t.subject) for t in held] == [
        (t.id, t.status, t.subject) for t in tickets
    ]
    if desk.kind is DeskKind.ZENDESK:
        assert [t.version for t in held] == [len(t.changes(NOW)) for t in tickets]


async def test_a_customer_writes_and_opens_again(desk: DemoDesk) -> None:
    await desk.put(sandbox_tickets(NOW))
    before = await desk.ticket("4101")
    assert before is not None
    assert (before.status, before.changes, before.notes) == (TicketStatus.OPEN, 0, 0)
    await desk.reopen("4101")
    assert await desk.ticket("4101") == before, "it was open"
    await desk.reply_as_customer("4101", "Still broken!")
    assert await desk.ticket("4101") == replace(before, version=before.version + 1)
    closed = next(t for t in await desk.tickets() if t.status is TicketStatus.CLOSED)
    await desk.reopen(closed.id)
    after = await desk.ticket(closed.id)
    assert after is not None
    assert (after.status, after.changes) == (TicketStatus.OPEN, 0)
    for nonsense in ("9", "-1", "four", "٤١٠١"):
        await desk.reply_as_customer(nonsense, "Hello")
        await desk.reopen(nonsense)
        assert await desk.ticket(nonsense) is None


@pytest.mark.parametrize("kind", OUTSIDE)
async def test_a_desk_finds_its_tickets_again_and_imports_none_twice(
    kind: DeskKind, tmp_path: Path
) -> None:
    first = outside_desk(kind, tmp_path, 0)
    await first.put(sandbox_tickets(NOW))
    await first.reply_as_customer("4101", "Still broken!")
    second = outside_desk(kind, tmp_path, 0)
    await second.put(sandbox_tickets(NOW))
    assert await second.tickets() == await first.tickets()
    assert second.goal("4101") == first.goal("4101")


async def test_a_github_issue_shows_no_address_and_no_note(tmp_path: Path) -> None:
    desk = outside_desk(DeskKind.GITHUB, tmp_path, 0)
    await desk.put(sandbox_tickets(NOW))
    readable = (tmp_path / "github.json").read_text(encoding="utf-8")
    assert "second charge was a duplicate" in readable
    assert "pat@cust.example" not in readable
    assert "re_5561" not in readable, "what only agents may see"
    assert desk.goal("4101") == "close 4101 and write to pat@cust.example"
