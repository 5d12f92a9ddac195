"""Opening a ticket again whose email was refused: asked for in Slack, answered by a click."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.sandbox.mailbox_faults import Fault, Point, Reply
from bot.sandbox.model import Message
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.ticket import TicketStatus
from executor.engine.desk import show_ticket
from tests.support.bot_harness import REVIEWER, SECOND, Harness
from tests.support.card_reading import action_ids
from tests.support.words import press


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def refused(h: Harness) -> tuple[Message, Message]:
    """Walk to a ticket that is closed without its email, and to the card that asks about it."""
    h.mailbox.fail(Fault(Point.RCPT, Reply(550, "no such user")))
    await h.start_run("close 4101")
    card = await h.settled_card()
    await press(h, REVIEWER, card, "approve")
    await h.until_operation(OperationStatus.PARTIAL, OperationStatus.AWAITING)
    asking = await h.settled_card(predicate=lambda m: "Reopen" in str(m.blocks))
    assert action_ids(asking.blocks) == ["approve", "reject"]
    return card, asking


async def ticket(h: Harness) -> TicketStatus:
    found = await show_ticket(h.database, h.policy.tenant_id, "4101")
    assert found is not None
    return found.status


async def test_a_click_opens_the_ticket_again_and_both_cards_say_so(h: Harness) -> None:
    card, asking = await refused(h)
    await h.shown("op_2 asks whether the ticket is opened again. Decide on its card.")
    await press(h, SECOND, asking, "approve")
    await h.whispered(SECOND, "Recorded: you said to open the ticket again (op_2).")
    await h.until_operation(OperationStatus.COMPENSATED, OperationStatus.SUCCEEDED)
    await h.until_run(2, RunStatus.SUCCEEDED)
    await h.shown("op_2 has opened the ticket again.", "The ticket was opened again.")
    assert await ticket(h) is TicketStatus.OPEN
    assert h.mailbox.accepted == 0
    assert (action_ids(card.blocks), action_ids(asking.blocks)) == ([], [])
    # Nobody works its run, so that it has no last word of its own to show.
    assert "run_2: " not in h.workspace.shown()


async def test_a_person_who_leaves_it_closed_says_why_in_a_form_for_that(h: Harness) -> None:
    _, asking = await refused(h)
    await press(h, SECOND, asking, "reject")
    form = h.person(SECOND).view()
    assert form is not None
    assert form.view["title"]["text"] == "Leave it closed"
    await h.person(SECOND).submit_view(form.id, {"reason": {"text": "Pat knows."}})
    await h.whispered(SECOND, "Recorded: you said to leave the ticket closed (op_2).")
    await h.until_operation(OperationStatus.LEFT, OperationStatus.REJECTED)
    await h.shown("op_2 would have opened the ticket again, and is rejected.", "Left closed")
    assert await ticket(h) is TicketStatus.CLOSED
