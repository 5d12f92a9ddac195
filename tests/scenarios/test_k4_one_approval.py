"""K4, B046: an approval is of one operation's content, and of nothing that resembles it."""

from __future__ import annotations

import pytest

from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Refused
from executor.engine.click import Recorded
from executor.engine.converging import Accepted, Answered
from executor.engine.desk import write_as_customer
from executor.engine.opening import Opened
from executor.engine.ports import ModelReply
from tests.support.bot_harness import REVIEWER, Harness
from tests.support.card_reading import action_ids
from tests.support.fake_mail import applied
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import RENE, SAM, Office, closing
from tests.support.words import press

PAT, OTHER = "pat@cust.example", "sam@cust.example"
READ = says("", calls("read_ticket", {"ticket_id": "4101"}))
BYE = says("That is all.")


def proposes(to: str) -> ModelReply:
    arguments = {
        "ticket_id": "4101",
        "language": "en",
        "subject": "Ticket 4101 closed",
        "message": "All is well.",
        "to": [to],
    }
    return says("", calls("propose_closing", arguments))


async def test_b046_an_approval_that_was_used_sends_neither_the_like_nor_the_same_again(
    database_url: str,
) -> None:
    """The model is answered from the record; when the ticket is open again, people are asked."""
    model = FakeModel(
        [
            *(READ, proposes(PAT), READ, proposes(OTHER), READ, proposes(PAT), BYE),
            *(READ, proposes(OTHER), READ, proposes(PAT), BYE),
        ]
    )
    async with Harness(database_url, model=model) as h:
        first = await h.start_run("close 4101")
        await press(h, REVIEWER, await h.settled_card(), "approve")
        await h.until_run(first, RunStatus.SUCCEEDED)
        results = [r.result for turn in model.requests[-1].turns for r in turn.results]
        told = [r for r in results if "operation" in r]
        assert [(r["operation"], r.get("reason")) for r in told] == [
            ("op_1", None),
            ("op_1", "already_done"),
            ("op_1", "already_done"),
        ]
        assert all("Nothing of this proposal" in str(r["message"]) for r in told[1:])
        assert await h.operations() == [OperationStatus.SUCCEEDED]

        await write_as_customer(h.database, h.policy.tenant_id, "4101", "Still broken!")
        await h.start_run("close 4101 again")
        like = await h.settled_card()
        assert OTHER in str(like.blocks)
        assert await h.operations() == [OperationStatus.SUCCEEDED, OperationStatus.AWAITING]
        await h.person(REVIEWER).click(like.channel, like.ts, "reject")
        form = h.person(REVIEWER).view()
        assert form is not None
        await h.person(REVIEWER).submit_view(form.id, {"reason": {"text": "Not to Sam."}})
        same = await h.settled_card(
            predicate=lambda m: "approve" in action_ids(m.blocks) and PAT in str(m.blocks)
        )
        assert await h.operations() == [
            OperationStatus.SUCCEEDED,
            OperationStatus.REJECTED,
            OperationStatus.AWAITING,
        ]
        assert [list(mail.envelope_to) for mail in h.mailbox.mails] == [[PAT]]
        await press(h, REVIEWER, same, "approve")
        await h.until_operation(
            OperationStatus.SUCCEEDED, OperationStatus.REJECTED, OperationStatus.SUCCEEDED
        )
        assert [list(mail.envelope_to) for mail in h.mailbox.mails] == [[PAT], [PAT]]
        used = await h.rows("SELECT status, count(*) FROM approvals GROUP BY status")
        assert dict(map(tuple, used)) == {"consumed": 2, "denied": 1}


async def test_b046_an_approval_not_used_yet_ends_with_what_it_was_of(office: Office) -> None:
    """Approved, then proposed to another, then word for word again: each stands alone."""
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    pat, other = closing(to=[PAT]), closing(to=[OTHER])
    [p1] = await office.ask(run_id, claimed, pat)
    assert isinstance(p1, Accepted)
    await office.show()
    approving = await office.click_for(p1.operation_id)
    assert isinstance((await office.decide(approving))[0], Recorded)
    held = await office.claim_operation(p1.operation_id)
    [like] = await office.ask(run_id, claimed, other, step=2)
    [same] = await office.ask(run_id, claimed, pat, step=3)
    assert isinstance(like, Accepted)
    assert isinstance(same, Accepted)
    assert len({p1.operation_id, like.operation_id, same.operation_id}) == 3
    assert not isinstance(await office.open_one(held), Opened)
    assert await office.claim_operations() == []
    standing = await office.rows(
        "SELECT o.status, a.status, (SELECT count(*) FROM decisions d WHERE d.approval_id = a.id) "
        "FROM operations o JOIN approvals a ON a.operation_id = o.id ORDER BY o.number"
    )
    assert standing == [
        ("superseded", "void", 1),
        ("superseded", "void", 0),
        ("awaiting", "open", 0),
    ]
    await office.show()
    again = await office.click(p1.operation_id, SAM)
    assert isinstance(again, Refused)
    assert again.reason is Reason.SUPERSEDED
    assert isinstance(await office.click(same.operation_id), Recorded)
    claimed_again = await office.claim_operation(same.operation_id)
    opened = await office.open_one(claimed_again)
    assert isinstance(opened, Opened)
    await office.report(claimed_again, opened, applied())
    assert await office.rows("SELECT operation_id FROM attempts") == [(same.operation_id,)]


@pytest.mark.parametrize("approved", [False, True])
async def test_b046_another_run_gets_nothing_out_of_an_approval_but_the_same_operation(
    office: Office, approved: bool
) -> None:
    run_id = await office.start_run()
    [p1] = await office.ask(run_id, await office.claim_run(run_id), closing(to=[PAT]))
    assert isinstance(p1, Accepted)
    await office.show()
    if approved:
        await office.click(p1.operation_id)
    second = await office.start_run(requester=SAM)
    claimed = await office.claim_run(second)
    [like] = await office.ask(second, claimed, closing(to=[OTHER]))
    [same] = await office.ask(second, claimed, closing(to=[PAT]), step=3)
    elsewhere = await office.propose(second, claimed, "4102", step=5)
    assert isinstance(like, Answered)
    assert like.result["error"] == "conflicts_with"
    assert same == Accepted(p1.operation_id, linked=True)
    assert await office.status(elsewhere) == "awaiting"
    if not approved:
        await office.click(p1.operation_id, RENE)
    [held] = await office.claim_operations()
    assert held.claim.key[1] == p1.operation_id
    assert isinstance(await office.open_one(held), Opened)
    assert await office.status(elsewhere) == "awaiting"
