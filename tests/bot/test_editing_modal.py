"""An email is edited in Slack: the form, the card with what changed, and what is sent at last."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.sandbox.delivery import Delivery
from bot.sandbox.model import Message, OpenView
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.engine.desk import write_as_customer
from tests.support.bot_harness import (
    REQUESTER,
    REVIEWER,
    SECOND,
    Harness,
    make_policy,
    proposing,
)
from tests.support.card_reading import action_ids, literals, part
from tests.support.words import press

BETTER = "Hello Pat,\n\nwe are sorry; your invoice is right now.\n\nAcme Support"


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def open_edit(h: Harness, who: str, card: Message) -> OpenView:
    """Press Edit and return the form."""
    await press(h, who, card, "edit")
    form = h.person(who).view()
    assert form is not None, h.workspace.shown()
    return form


async def submit(h: Harness, who: str, form: OpenView, **typed: str) -> Delivery:
    """Submit the form with some of it typed anew."""
    values = {block: {"text": text} for block, text in typed.items()}
    return await h.person(who).submit_view(form.id, values)


def initial(form: OpenView, block: str) -> str:
    """What stands in an input when the form opens."""
    [element] = [b["element"] for b in form.view["blocks"] if b.get("block_id") == block]
    return str(element.get("initial_value", ""))


async def edited_card(h: Harness) -> Message:
    """Wait for the card of the edited revision."""
    return await h.card(
        lambda m: "approve" in action_ids(m.blocks) and "in the place of" in str(m.blocks)
    )


async def test_an_edit_is_shown_with_what_changed_and_sent_byte_for_byte(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    form = await open_edit(h, REVIEWER, card)
    assert initial(form, "to").endswith("<pat@cust.example>") or "@" in initial(form, "to")
    before = initial(form, "text_0")
    delivery = await submit(
        h,
        REVIEWER,
        form,
        to="Kim <kim@cust.example>",
        cc="sam@cust.example",
        subject="Ticket 4101: done",
        text_0=BETTER,
    )
    assert delivery.acknowledged
    assert delivery.view_errors == {}
    assert h.person(REVIEWER).view() is None
    await h.whispered(REVIEWER, "op_2 takes the place of op_1 with your changes.")
    new = await edited_card(h)
    changed = part(new.blocks, "Edited by ")
    assert "- Ticket 4101" in changed
    assert "+ Ticket 4101: done" in changed
    assert '+ "Kim" <kim@cust.example>' in changed
    assert "+ we are sorry; your invoice is right now." in changed
    assert f"- {before.splitlines()[2]}" in changed
    await h.workspace.wait_for(lambda _: "Superseded by op_2, edited by " in str(card.blocks))
    assert action_ids(card.blocks) == []
    await press(h, REVIEWER, new, "approve")
    await h.whispered(REVIEWER, "You edited this, so somebody else has to approve it.")
    await press(h, SECOND, new, "approve")
    await h.until_operation(OperationStatus.SUPERSEDED, OperationStatus.SUCCEEDED)
    await h.until_run(1, RunStatus.SUCCEEDED)
    [mail] = h.mailbox.mails
    assert mail.envelope_to == ("kim@cust.example", "sam@cust.example")
    text, html = (mail.parsed.get_body((kind,)) for kind in ("plain", "html"))
    assert text is not None
    assert html is not None
    sent = text.get_payload(decode=True)
    assert isinstance(sent, bytes)
    # Lines end as SMTP has it; what was approved and what was sent are equal when read with LF.
    assert sent.replace(b"\r\n", b"\n") == f"{BETTER}\n".encode()
    assert "we are sorry" in html.get_content()
    assert mail.parsed["Subject"] == "Ticket 4101: done"
    [shown] = [text for text in literals(new.blocks) if "⟦end⟧" in text]
    assert shown == f"{BETTER}\n⟦end⟧"


async def test_votes_before_the_edit_do_not_count(database_url: str) -> None:
    two = make_policy(approval={"quorum": 2}, people={"editors": [REQUESTER]})
    async with Harness(database_url, policy=two) as h:
        await h.start_run("close 4101")
        card = await h.settled_card()
        await press(h, SECOND, card, "approve")
        await h.whispered(SECOND, "It needs 1 more approval.")
        form = await open_edit(h, REQUESTER, card)
        await submit(h, REQUESTER, form, text_0=BETTER)
        new = await edited_card(h)
        await press(h, REVIEWER, new, "approve")
        await h.whispered(REVIEWER, "It needs 1 more approval.")
        assert await h.operations() == [OperationStatus.SUPERSEDED, OperationStatus.AWAITING]
        await press(h, SECOND, new, "approve")
        await h.until_operation(OperationStatus.SUPERSEDED, OperationStatus.SUCCEEDED)


async def test_problems_stand_under_their_inputs_and_nothing_typed_is_lost(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    form = await open_edit(h, REVIEWER, card)
    wrong = await submit(h, REVIEWER, form, to="kim@cust.example\npat", subject=" ", text_0=" ")
    assert set(wrong.view_errors) == {"to", "subject", "text_0"}
    assert wrong.view_errors["to"].startswith("Address 2: ")
    assert h.person(REVIEWER).view() is form
    assert await h.operations() == [OperationStatus.AWAITING]
    right = await submit(h, REVIEWER, form, to="kim@cust.example", text_0=BETTER)
    assert right.view_errors == {}
    await edited_card(h)


async def test_who_may_not_edit_gets_no_form_and_is_told_why(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    await press(h, REQUESTER, card, "edit")
    await h.whispered(REQUESTER, "You may not edit proposals here.")
    assert h.person(REQUESTER).view() is None
    [note] = await h.notes("decision_refused")
    assert (note["asked"], note["reason"]) == ("edit", "not_permitted")


async def test_an_edit_that_changes_nothing_says_so(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    form = await open_edit(h, REVIEWER, card)
    assert (await submit(h, REVIEWER, form)).view_errors == {}
    await h.whispered(REVIEWER, "You changed nothing, so everything stays as it is.")
    assert await h.operations() == [OperationStatus.AWAITING]


async def test_the_second_of_two_editors_is_told_who_was_first_and_keeps_the_text(
    h: Harness,
) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    mine, theirs = await open_edit(h, REVIEWER, card), await open_edit(h, SECOND, card)
    await submit(h, SECOND, theirs, text_0=BETTER)
    late = await submit(h, REVIEWER, mine, text_0="Mine.")
    assert late.view_errors == {
        "to": "op_2, edited by <@U0SECOND>, has taken its place. Look at its card."
    }
    assert await h.operations() == [OperationStatus.SUPERSEDED, OperationStatus.AWAITING]
    new = await edited_card(h)
    # On the new card both may go on.
    again = await open_edit(h, REVIEWER, new)
    assert initial(again, "text_0") == BETTER
    await submit(h, REVIEWER, again, text_0="Mine.")
    await h.until_operation(
        OperationStatus.SUPERSEDED, OperationStatus.SUPERSEDED, OperationStatus.AWAITING
    )


async def test_an_edit_of_what_was_approved_meanwhile_is_refused(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    form = await open_edit(h, REVIEWER, card)
    await press(h, SECOND, card, "approve")
    await h.until_operation(OperationStatus.SUCCEEDED)
    late = await submit(h, REVIEWER, form, text_0=BETTER)
    assert set(late.view_errors) == {"to"}
    assert h.mailbox.accepted == 1


async def test_a_long_text_is_edited_in_parts_and_joined_without_a_loss(
    database_url: str,
) -> None:
    message = "\n\n".join(f"Paragraph {n}: {'all is well, ' * 30}we hope." for n in range(20))
    async with Harness(database_url, model=proposing(message=message)) as h:
        await h.start_run("close 4101")
        card = await h.settled_card(predicate=lambda m: "edit" in action_ids(m.blocks))
        form = await open_edit(h, REVIEWER, card)
        blocks = [b["block_id"] for b in form.view["blocks"] if b["type"] == "input"]
        parts = [block for block in blocks if block.startswith("text_")]
        assert len(parts) > 2
        last = initial(form, parts[-1])
        await submit(h, REVIEWER, form, **{parts[-1]: f"{last}\nP.S. Thank you."})
        await h.until_operation(OperationStatus.SUPERSEDED, OperationStatus.AWAITING)
        texts = [
            part["email"]["text"]
            for (intent,) in await h.rows(
                "SELECT CAST(intent AS jsonb) FROM operations ORDER BY number"
            )
            for part in intent["effects"]
            if "email" in part
        ]
        assert texts[1] == f"{texts[0]}P.S. Thank you.\n"


async def test_what_is_out_of_date_is_proposed_again_from_its_card(database_url: str) -> None:
    two = make_policy(approval={"quorum": 2})
    async with Harness(database_url, policy=two) as h:
        await h.start_run("close 4101")
        card = await h.settled_card()
        await write_as_customer(h.database, h.policy.tenant_id, "4101", "Wait, still broken!")
        # Whatever draws the card again makes it tell.
        await press(h, SECOND, card, "approve")
        await h.workspace.wait_for(lambda _: "propose_again" in action_ids(card.blocks))
        assert "You looked at version 7; it is now 8." in str(card.blocks)
        assert "Wait, still broken!" in str(card.blocks)
        await press(h, REQUESTER, card, "propose_again")
        await h.whispered(REQUESTER, "op_1 is proposed again as op_2.")
        new = await h.card(
            lambda m: "approve" in action_ids(m.blocks) and "Proposed again" in str(m.blocks)
        )
        assert "It says exactly the same." in str(new.blocks)
        await h.workspace.wait_for(lambda _: "proposed again as op_2" in str(card.blocks))
        assert action_ids(card.blocks) == []
        await press(h, REVIEWER, new, "approve")
        assert await h.operations() == [OperationStatus.STALE, OperationStatus.AWAITING]
        await press(h, SECOND, new, "approve")
        await h.until_operation(OperationStatus.STALE, OperationStatus.SUCCEEDED)
        await h.until_run(1, RunStatus.SUCCEEDED)


async def test_whoever_presses_for_it_again_may_not_approve_it(database_url: str) -> None:
    two = make_policy(approval={"quorum": 2})
    async with Harness(database_url, policy=two) as h:
        await h.start_run("close 4101")
        card = await h.settled_card()
        await write_as_customer(h.database, h.policy.tenant_id, "4101", "Wait, still broken!")
        await press(h, SECOND, card, "approve")
        await h.workspace.wait_for(lambda _: "propose_again" in action_ids(card.blocks))
        older = len(card.revisions) - 1
        await press(h, REVIEWER, card, "propose_again")
        new = await h.card(
            lambda m: "approve" in action_ids(m.blocks) and "Proposed again" in str(m.blocks)
        )
        await press(h, REVIEWER, new, "approve")
        await h.whispered(REVIEWER, "You asked for this, so somebody else has to approve it.")
        await press(h, SECOND, card, "propose_again", revision=older)
        await h.whispered(SECOND, "op_1 was already proposed again as op_2.")
