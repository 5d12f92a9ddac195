"""A person's edit is a new revision: checked as a click and as a proposal, decided by others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from executor.domain.address import refuse_smtputf8
from executor.domain.approval import Vote
from executor.domain.email import EmailContent
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.click import NotConfirmed, Recorded
from executor.engine.failpoint import Commit, Side, point
from executor.engine.pressing import read_back
from executor.engine.replacement import Replaced
from executor.engine.setup import activate_policy
from executor.engine.waking import wake
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_mail import applied
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import RENE, RIKO, SAM, Office, closing, policy
from tests.support.outside import at_zendesk
from tests.support.replacing import (
    BETTER,
    draft_for,
    edit_for,
    edited,
    press_edit,
    record_of,
)
from tests.support.waiting import another_pool
from tests.support.working import Working

READ = says("", calls("read_ticket", {"ticket_id": "4101"}))
PROPOSE = says(
    "",
    calls(
        "propose_closing",
        {
            "ticket_id": "4101",
            "language": "en",
            "subject": "Ticket 4101 closed",
            "message": "Your invoice is corrected.",
        },
    ),
)


def _refused(result: object, reason: Reason) -> Refused:
    assert isinstance(result, Refused), result
    assert result.reason is reason
    return result


async def _only(office: Office) -> list[str]:
    return [s for (s,) in await office.rows("SELECT status FROM operations ORDER BY number")]


async def test_an_edit_takes_the_place_of_what_was_shown_in_one_commit(office: Office) -> None:
    operation = await office.proposed()
    new = await edited(office, operation, subject="Ticket 4101: corrected", text=BETTER)
    assert await _only(office) == ["superseded", "awaiting"]
    [row] = await office.rows(
        "SELECT o.editor, o.content_revision, o.requester, o.replaces, o.run_id, a.status, "
        "a.digest = o.digest, a.content_revision FROM operations o "
        "JOIN approvals a ON a.operation_id = o.id WHERE o.id = :id",
        id=new,
    )
    run_id = await office.run_of(operation)
    assert row == (RENE, 2, RIKO, operation, run_id, "open", True, 2)
    void = "SELECT status FROM approvals WHERE tenant_id = :t AND operation_id = :id"
    assert await office.value(void, operation) == "void"
    before, after = await record_of(office, operation), await record_of(office, new)
    assert before.successor is not None
    assert (before.successor.number, before.successor.editor) == (after.number, RENE)
    assert after.previous is not None
    assert (after.previous.number, after.previous.email) == (before.number, before.email)
    assert after.editor == RENE
    assert after.requester == RIKO
    assert after.email is not None
    assert before.email is not None
    assert after.email["text"] == BETTER
    assert after.email["subject"] == "Ticket 4101: corrected"
    assert after.email["html"] != before.email["html"]
    assert "we are sorry" in str(after.email["html"])
    assert after.email["message_id"] != before.email["message_id"]


async def test_the_run_waits_for_the_new_revision_and_is_told_that_a_person_edited_it(
    office: Office,
) -> None:
    working = await Working.start(office, FakeModel([READ, PROPOSE, says("Done.")]))
    await working.drive()
    await office.show()
    [operation] = await working.operations()
    new = await edited(office, operation)
    await wake(office.engine)
    assert not await working.due()
    assert await office.run_status(working.run_id) == "waiting"
    await office.click(new, SAM)
    opened = await office.open_one(held := await office.claim_operation(new))
    await office.report(held, opened, applied())  # type: ignore[arg-type]
    await wake(office.engine)
    await working.drive()
    assert await office.run_status(working.run_id) == "succeeded"
    told = (await working.told())[-1]
    assert (told["status"], told["edited"]) == ("succeeded", True)
    assert told["final"] == {
        "to": ["pat@cust.example"],
        "cc": [],
        "subject": "Ticket 4101 closed",
        "body": BETTER,
    }


async def test_what_is_sent_is_what_was_edited(office: Office) -> None:
    new = await edited(office, await office.proposed(), to=("Kim <kim@cust.example>",))
    await office.click(new, SAM)
    await office.open_one(await office.claim_operation(new))
    [(payload, envelope)] = await office.rows(
        "SELECT payload, envelope FROM effects WHERE operation_id = :id AND kind = 'email.send'",
        id=new,
    )
    assert envelope["to"] == ["kim@cust.example"]
    assert b"To: Kim <kim@cust.example>" in bytes(payload)


async def test_votes_on_the_revision_before_are_void_and_the_editor_may_not_approve(
    office: Office,
) -> None:
    await activate_policy(office.engine, policy(approval={"quorum": 2}))
    operation = await office.proposed()
    assert isinstance(await office.click(operation, SAM), Recorded)
    new = await edited(office, operation)
    voted = "SELECT count(*) FROM decisions d JOIN approvals a ON a.id = d.approval_id "
    voted += "WHERE d.tenant_id = :t AND a.operation_id = :id"
    assert await office.value(voted, new) == "0"
    _refused(await office.click(new, RENE), Reason.OWN_EDIT)
    _refused(await office.click(new, RIKO), Reason.OWN_REQUEST)
    assert await office.click(new, SAM) == Recorded(Vote.APPROVE, 1, decided=False)
    # An old Approve decides nothing of the new revision.
    assert await office.click(operation, SAM) == NoChange(Reason.SUPERSEDED)
    _refused(await office.click(operation, RENE), Reason.SUPERSEDED)
    assert await office.status(new) == "awaiting"


async def test_a_linked_requester_may_not_approve_the_new_revision_either(office: Office) -> None:
    operation = await office.proposed()
    second = await office.start_run(requester=SAM)
    await office.ask(second, await office.claim_run(second), closing())
    new = await edited(office, operation)
    assert (await record_of(office, new)).linked_requesters == (SAM,)
    _refused(await office.click(new, SAM), Reason.LINKED_REQUEST)
    waiting = await office.rows("SELECT DISTINCT operation_id FROM proposals")
    assert waiting == [(new,)]


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"to": ()}, ["to"]),
        ({"to": ("pat",), "subject": " spaced "}, ["to[0]", "subject"]),
        ({"cc": ("a@b.example, c@d.example",)}, ["cc[0]"]),
        ({"subject": "two\nlines"}, ["subject"]),
        ({"text": "  \n"}, ["text"]),
        ({"text": "Bell\x07"}, ["text"]),
        ({"text": "x" * 20_001}, ["text"]),
        ({"to": tuple(f"p{n}@cust.example" for n in range(21))}, ["to"]),
    ],
)
async def test_content_is_held_to_the_rules_of_a_proposal_and_all_of_it_is_told(
    office: Office, changes: dict[str, Any], fields: list[str]
) -> None:
    operation = await office.proposed()
    result = await press_edit(office, await edit_for(office, operation, **changes))
    told = _refused(result, Reason.CONTENT_INVALID).detail["problems"]
    assert [problem["field"] for problem in told] == fields  # type: ignore[index,union-attr,call-overload]
    assert await _only(office) == ["awaiting"]


async def test_what_the_mail_provider_does_not_take_is_told_as_well(office: Office) -> None:
    operation = await office.proposed()
    asked = await edit_for(office, operation, to=("jörg@cust.example",))

    def freeze(content: EmailContent, reference: str) -> bytes:
        refuse_smtputf8(content.mailboxes())
        return reference.encode()

    office.mail.freeze = freeze  # type: ignore[method-assign]
    told = _refused(await press_edit(office, asked), Reason.CONTENT_INVALID).detail["problems"]
    assert told[0]["field"] == "to"  # type: ignore[index,call-overload]
    assert await _only(office) == ["awaiting"]


async def test_an_edit_that_changes_nothing_is_no_change(office: Office) -> None:
    operation = await office.proposed()
    same = await draft_for(office, operation)
    as_slack_has_it = replace(same, text=same.text.removesuffix("\n").replace("\n", "\r\n"))
    asked = replace(await edit_for(office, operation), draft=as_slack_has_it)
    assert await press_edit(office, asked) == NoChange(Reason.NOTHING_EDITED)
    assert await _only(office) == ["awaiting"]
    assert isinstance(await office.click(operation, RENE), Recorded)


async def test_a_second_delivery_of_the_same_edit_changes_nothing(office: Office) -> None:
    operation = await office.proposed()
    asked = await edit_for(office, operation)
    assert isinstance(await press_edit(office, asked), Replaced)
    assert await press_edit(office, asked) == NoChange()
    assert await _only(office) == ["superseded", "awaiting"]


async def test_of_two_editors_at_once_one_wins_and_the_other_is_told(
    office: Office, database_url: str
) -> None:
    operation = await office.proposed()
    one = await edit_for(office, operation, RENE)
    other = await edit_for(office, operation, SAM, text="Mine.\n")
    async with another_pool(database_url) as pool:
        results = await asyncio.gather(
            press_edit(office, one), press_edit(office.colleague(pool), other)
        )
    assert sorted(type(r).__name__ for r in results) == ["Refused", "Replaced"]
    [lost] = [r for r in results if isinstance(r, Refused)]
    assert lost.reason is Reason.SUPERSEDED
    assert await _only(office) == ["superseded", "awaiting"]


async def test_of_an_edit_and_an_approval_at_once_one_is_first(
    office: Office, database_url: str
) -> None:
    operation = await office.proposed()
    asked = await edit_for(office, operation, RENE)
    click = await office.click_for(operation, SAM)
    async with another_pool(database_url) as pool:
        result, [voted] = await asyncio.gather(
            press_edit(office.colleague(pool), asked), office.decide(click)
        )
    if isinstance(result, Replaced):
        _refused(voted, Reason.SUPERSEDED)
        assert await _only(office) == ["superseded", "awaiting"]
    else:
        _refused(result, Reason.ALREADY_GRANTED)
        assert await _only(office) == ["approved"]


async def test_no_rule_lets_an_edited_revision_go_by_itself(office: Office) -> None:
    operation = await office.proposed()
    rules = [{"name": "routine", "quorum": 0}]
    await activate_policy(office.engine, policy(rules=rules, approval={"quorum": 2}))
    new = await edited(office, operation)
    assert await office.status(new) == "awaiting"
    [(terms,)] = await office.rows("SELECT terms FROM approvals WHERE operation_id = :id", id=new)
    assert [(r["rule"], r["quorum"]) for r in terms["requirements"]] == [("approval", 2)]


async def test_the_risks_of_what_was_edited_are_found_anew(office: Office) -> None:
    rules = [{"name": "outsiders", "when": ["outside_recipient"], "quorum": 2}]
    await activate_policy(office.engine, policy(rules=rules))
    operation = await office.proposed()
    assert (await record_of(office, operation)).approval.quorum == 1
    new = await edited(office, operation, cc=("else@other.example",))
    assert (await record_of(office, new)).approval.quorum == 2


async def test_an_edit_of_an_edit_is_a_third_revision_with_its_own_editor(office: Office) -> None:
    second = await edited(office, await office.proposed(), RENE)
    third = await edited(office, second, SAM, text="Once more.\n")
    record = await record_of(office, third)
    assert (record.content_revision, record.editor) == (3, SAM)
    _refused(await office.click(third, SAM), Reason.OWN_EDIT)
    assert isinstance(await office.click(third, RENE), Recorded)


async def test_an_edit_of_an_outside_ticket_rests_on_a_fresh_look(office: Office) -> None:
    async with at_zendesk(office) as outside:
        operation = await outside.proposed()
        new = await edited(office, operation)
        assert await office.status(new) == "awaiting"
        outside.there.customer_writes()
        refused = _refused(
            await press_edit(office, await edit_for(office, new, SAM, text="Again.\n")),
            Reason.VERSION_CHANGED,
        )
        assert refused.detail["version"] != refused.detail["approved"]
        # What was seen is kept, so that the card can say what changed.
        record = await record_of(office, new)
        assert record.target.changes_since != ()


@pytest.mark.parametrize("side", Side)
async def test_a_crash_at_the_commit_leaves_all_of_an_edit_or_nothing(
    office: Office, database_url: str, side: Side
) -> None:
    operation = await office.proposed()
    asked = await edit_for(office, operation)
    async with another_pool(database_url) as pool:
        dying = office.colleague(pool, failpoints=Trap(point(Commit.EDIT, side)))
        with pytest.raises(Crashed):
            await press_edit(dying, asked)
    known = await read_back(office.engine, asked)
    if side is Side.BEFORE:
        assert await _only(office) == ["awaiting"]
        assert known == NotConfirmed()
        # Nothing of it is remembered, so the same request again is not mistaken for handled.
        assert isinstance(await press_edit(office, asked), Replaced)
    else:
        assert await _only(office) == ["superseded", "awaiting"]
        assert isinstance(known, Replaced)
        assert await press_edit(office, asked) == NoChange()
