"""K12: version conflicts and double notices, on a job whose tickets are at an outside desk.

P1 closes ticket 4101 at version 7, with the tag ``refund`` and an internal note. A change can come
before we look at the ticket for the last time, which makes P1 stale; or after it, when the desk
refuses it and the reading decides.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest

from bot.sandbox.desk_faults import DeskFault
from bot.sandbox.zendesk_account import ZendeskAccount
from bot.sandbox.zendesk_double import ZendeskDouble
from executor.domain.ids import OperationId
from executor.domain.recovery import Why
from executor.engine.failpoint import CALL, Commit, Side, point
from executor.engine.records import read_operation
from tests.support.failpoints import Crashed, Trap
from tests.support.office import TENANT, Office
from tests.support.outside import Outside, ZendeskThere, at_github, at_zendesk, kinds

SEVEN = 7
CASE = [True, False]


class Meanwhile:
    """Lets something happen after the last look at the ticket, right before the request leaves."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens: Callable[[], None] | None = happens

    async def reach(self, name: str) -> None:
        """Let it happen once."""
        if name == point(CALL, Side.BEFORE) and self._happens is not None:
            self._happens()
            self._happens = None


@dataclass
class P1:
    """Ticket 4101 at version 7, and P1, which is approved to close it."""

    outside: Outside
    double: ZendeskDouble
    operation: OperationId
    approved_stamp: str

    @property
    def account(self) -> ZendeskAccount:
        return self.double.account

    @property
    def record(self) -> dict[str, object]:
        return self.account.tickets[4101].record

    async def executed(
        self, happens: Callable[[], None] | None = None, *, seen: bool = False
    ) -> str:
        """Execute P1 to its end while something happens, which a last look has ``seen`` or not."""
        office = self.outside.office
        if happens is not None and seen:
            happens()
        [claimed] = await office.claim_operations()
        meanwhile = Meanwhile(happens or (lambda: None)) if not seen else None
        await self.outside.doubt.execute(claimed, office.colleague(failpoints=meanwhile))
        await self.outside.finish()
        return await office.status(self.operation)

    async def is_over_for(self, seen: bool, status: str) -> bool:
        """Say whether P1 ended as it has to when the ticket moved; nothing is left to be done."""
        reason = await self.outside.office.reason(self.operation)
        return (status, reason) == ("stale" if seen else "failed", "version_changed")

    def is_untouched(self) -> bool:
        """Say whether nothing of P1 reached the ticket or the customer."""
        no_mail = self.outside.mail.accepted == 0 and self.account.mails == []
        tags, notes = self.record["tags"], self.outside.there.notes
        return (self.record["status"], tags, notes, no_mail) == ("open", ["vip"], [], True)


@pytest.fixture
async def p1(office: Office) -> AsyncIterator[P1]:
    async with at_zendesk(office, closing_tag="refund") as outside:
        assert isinstance(outside.there, ZendeskThere)
        double = outside.there.double
        for _ in range(SEVEN - 2):
            double.account.customer_replies(4101, "Hello?")
            outside.clock.advance(60)
        seen = await outside.desk.read("4101")
        assert seen is not None
        assert seen.ticket.version == SEVEN
        yield P1(outside, double, await outside.approved(), seen.stamp.updated_at)


@pytest.mark.parametrize("seen", CASE)
async def test_b151_a_conflict_leaves_tags_note_and_status_as_they_were(p1: P1, seen: bool) -> None:
    status = await p1.executed(lambda: p1.account.agent_edits(4101, priority="high"), seen=seen)
    assert await p1.is_over_for(seen, status)
    assert p1.is_untouched()


@pytest.mark.parametrize("seen", CASE)
async def test_b152_an_agents_parallel_change_survives_and_is_not_retried_over(
    p1: P1, seen: bool
) -> None:
    def assigned() -> None:
        p1.outside.clock.advance(0.9)
        p1.account.agent_edits(4101, assignee_id=77)
        p1.outside.clock.advance(0.1)

    assert await p1.is_over_for(seen, await p1.executed(assigned, seen=seen))
    assert (p1.record["assignee_id"], p1.double.applied) == (77, 0)


async def test_b153_a_conflict_costs_one_attempt_with_the_approved_version_and_no_other(
    p1: P1,
) -> None:
    status = await p1.executed(lambda: p1.account.agent_edits(4101, subject="Refund (2)"))
    assert await p1.is_over_for(False, status)
    assert [update["updated_stamp"] for update in p1.double.updates] == [p1.approved_stamp]
    attempts = await p1.outside.office.rows("SELECT number, status FROM attempts")
    assert attempts == [(1, "not_applied")]


async def test_b154_a_collision_without_a_change_is_repeated_once_and_ends_done(p1: P1) -> None:
    p1.double.faults.add(DeskFault.COLLISION)
    assert await p1.executed() == "succeeded"
    assert (p1.record["status"], p1.double.applied) == ("solved", 1)
    assert p1.double.faults.counts["change"] == 2
    assert p1.outside.mail.accepted == 1


async def test_b154_a_collision_with_a_change_behind_it_ends_stale(p1: P1) -> None:
    p1.double.faults.add(DeskFault.COLLISION)
    status = await p1.executed(lambda: p1.account.agent_edits(4101, priority="high"))
    assert await p1.is_over_for(False, status)
    assert p1.double.faults.counts["change"] == 1
    assert p1.is_untouched()


async def test_b154_collisions_that_go_on_are_put_to_a_person_and_do_not_loop(p1: P1) -> None:
    for number in (1, 2):
        p1.double.faults.add(DeskFault.COLLISION, number)
    assert await p1.executed() == "unknown"
    assert p1.double.faults.counts["change"] == 2
    assert await p1.outside.doubt.asked(p1.operation) == Why.COLLIDES.value
    assert p1.is_untouched()


@pytest.mark.parametrize("fault", [DeskFault.RESET_BEFORE, DeskFault.RESET_AFTER])
async def test_b156_a_worker_that_dies_in_the_close_leaves_one_note_and_a_closed_ticket(
    p1: P1, fault: DeskFault
) -> None:
    p1.double.faults.add(fault)
    office = p1.outside.office
    [claimed] = await office.claim_operations()
    dying = office.colleague(failpoints=Trap(point(Commit.REPORT, Side.BEFORE)))
    with suppress(Crashed):
        await p1.outside.doubt.execute(claimed, dying)
    await p1.outside.finish()
    assert await office.status(p1.operation) == "succeeded"
    assert (p1.record["status"], len(p1.outside.there.notes)) == ("solved", 1)
    assert p1.outside.mail.accepted == 1


async def test_b156_a_note_that_was_left_before_the_worker_died_is_not_left_again(
    office: Office,
) -> None:
    async with at_github(office) as outside:
        operation = await outside.approved()
        [claimed] = await office.claim_operations()
        dying = office.colleague(failpoints=Trap(point(Commit.REPORT, Side.BEFORE)))
        with suppress(Crashed):
            await outside.doubt.execute(claimed, dying)
        assert (len(outside.there.notes), outside.there.is_closed) == (1, False)
        await outside.finish()
        assert await office.status(operation) == "succeeded"
        assert (len(outside.there.notes), outside.there.closes) == (1, 1)


@pytest.mark.parametrize("seen", CASE)
async def test_b159_a_customers_reply_stops_the_close_and_the_card_tells_of_it(
    p1: P1, seen: bool
) -> None:
    status = await p1.executed(lambda: p1.account.customer_replies(4101, "still broken"), seen=seen)
    assert await p1.is_over_for(seen, status)
    assert p1.is_untouched()
    detail = await p1.outside.detail(p1.operation)
    outcome = detail.get("outcome", detail)
    assert isinstance(outcome, dict)
    assert kinds(outcome["changes"]) == ["customer_message"]
    async with p1.outside.office.database.transaction() as conn:
        card = await read_operation(conn, TENANT, p1.operation)
    assert [change.body for change in card.target.changes_since] == ["still broken"]
    assert card.target.current_version == SEVEN + 1
