"""Who may edit what, and when it is too late for an edit: each gets the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from executor.domain.approval import Vote
from executor.domain.ids import PrincipalId
from executor.domain.transition import Reason, Refused
from executor.engine.click import Recorded
from executor.engine.replacement import MayBeEdited
from executor.engine.setup import activate_policy
from tests.support.office import OTTO, RENE, RIKO, SAM, Office, policy
from tests.support.replacing import edit_for, edited, press_edit, record_of


def _refused(result: object, reason: Reason) -> Refused:
    assert isinstance(result, Refused), result
    assert result.reason is reason
    return result


async def _only(office: Office) -> list[str]:
    return [s for (s,) in await office.rows("SELECT status FROM operations ORDER BY number")]


@pytest.mark.parametrize(
    ("who", "reason"),
    [(OTTO, Reason.NOT_PERMITTED), (PrincipalId("slack:T0OTHER:U0X"), Reason.OTHER_WORKSPACE)],
)
async def test_who_may_not_edit_is_refused_on_record(
    office: Office, who: PrincipalId, reason: Reason
) -> None:
    operation = await office.proposed()
    _refused(await press_edit(office, await edit_for(office, operation, who)), reason)
    notes = await office.rows("SELECT actor, detail FROM journal WHERE event = 'decision_refused'")
    assert notes == [(who, {"asked": "edit", "reason": reason.value})]
    assert await _only(office) == ["awaiting"]


async def test_the_policy_names_the_editors(office: Office) -> None:
    people = {
        "requesters": ["U0REQUESTER"],
        "approvers": ["U0REVIEWER", "U0SECOND"],
        "editors": ["U0OUTSIDER"],
    }
    await activate_policy(office.engine, policy(people=people))
    operation = await office.proposed()
    _refused(await press_edit(office, await edit_for(office, operation)), Reason.NOT_PERMITTED)
    new = await edited(office, operation, OTTO)
    assert isinstance(await office.click(new, RENE), Recorded)


async def test_an_old_observation_of_the_editor_is_not_enough(office: Office) -> None:
    operation = await office.proposed()
    asked = await edit_for(office, operation)
    await office.later_unseen(seconds=61)
    _refused(await press_edit(office, asked), Reason.IDENTITY_UNKNOWN)


async def test_a_stale_edit_is_refused_and_decides_nothing_of_the_newer_revision(
    office: Office,
) -> None:
    operation = await office.proposed()
    asked = await edit_for(office, operation, SAM)
    forged = replace(asked, digest=bytes(32))
    _refused(await press_edit(office, forged), Reason.CONTENT_CHANGED)
    older = replace(await edit_for(office, operation, SAM), content_revision=7)
    _refused(await press_edit(office, older), Reason.CONTENT_CHANGED)
    elsewhere = replace(await edit_for(office, operation, SAM), message_ts="ts-elsewhere")
    _refused(await press_edit(office, elsewhere), Reason.NOT_SHOWN)
    new = await edited(office, operation, RENE)
    late = _refused(
        await press_edit(office, replace(asked, request_hash=bytes(32))), Reason.SUPERSEDED
    )
    number = (await record_of(office, new)).number
    assert late.detail == {"successor": number, "editor": RENE}
    assert await _only(office) == ["superseded", "awaiting"]


@pytest.mark.parametrize(
    ("vote", "reason"),
    [(Vote.APPROVE, Reason.ALREADY_GRANTED), (Vote.REJECT, Reason.ALREADY_DENIED)],
)
async def test_what_is_decided_is_not_edited(office: Office, vote: Vote, reason: Reason) -> None:
    operation = await office.proposed()
    asked = await edit_for(office, operation)
    await office.click(operation, RENE, vote)
    _refused(await press_edit(office, asked), reason)


async def test_nothing_is_edited_after_the_time_to_decide(office: Office) -> None:
    operation = await office.proposed()
    asked = await edit_for(office, operation)
    await office.later(hours=25)
    _refused(await press_edit(office, asked), Reason.EXPIRED)


async def test_nothing_is_edited_when_the_ticket_moved_or_the_requester_lost_the_right(
    office: Office,
) -> None:
    operation = await office.proposed()
    await office.customer_writes()
    _refused(await press_edit(office, await edit_for(office, operation)), Reason.VERSION_CHANGED)
    second = await office.proposed("4102")
    people = {"requesters": ["U0SECOND"], "approvers": ["U0REVIEWER", "U0SECOND"]}
    await activate_policy(office.engine, policy(people=people))
    refused = _refused(
        await press_edit(office, await edit_for(office, second)), Reason.NOT_PERMITTED
    )
    assert refused.detail["who"] == RIKO


async def test_nothing_of_a_run_that_has_ended_is_edited(office: Office) -> None:
    operation = await office.proposed()
    asked = await edit_for(office, operation)
    await office.cancel(await office.run_of(operation))
    _refused(await press_edit(office, asked), Reason.WITHDRAWN)


async def test_who_only_asks_is_told_whether_an_edit_would_count(office: Office) -> None:
    operation = await office.proposed()
    asks = replace(await edit_for(office, operation), draft=None)
    assert await press_edit(office, asks) == MayBeEdited()
    assert await _only(office) == ["awaiting"]
    outsider = replace(await edit_for(office, operation, OTTO), draft=None)
    _refused(await press_edit(office, outsider), Reason.NOT_PERMITTED)
    [(answer,)] = await office.rows("SELECT answer FROM notices")
    assert answer["reason"] == "not_permitted"
