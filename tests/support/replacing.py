"""People edit what waits, and ask again for what is out of date: what they press, and what stands
then.

A race between processes needs no more than this: ``edit_for`` and ``again_for`` make the presses
from what a card shows now, and ``press_edit`` and ``press_again`` carry them out in whichever
office they are given.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import replace
from typing import Any

from executor.domain.closing_draft import ClosingDraft, draft_of
from executor.domain.ids import OperationId, PrincipalId
from executor.engine.card_record import OperationRecord
from executor.engine.editing import edit
from executor.engine.proposing_again import propose_again
from executor.engine.records import read_operation
from executor.engine.replacement import (
    AskAgain,
    AskAgainResult,
    Edit,
    EditResult,
    Pressed,
    Replaced,
)
from executor.engine.replacement_scene import Workshop
from tests.support.office import RENE, TENANT, Office

BETTER = "Dear Pat,\n\nyour invoice is corrected, and we are sorry.\n\nAcme Support\n"


def workshop(office: Office) -> Workshop:
    """What a bot process of this office makes replacements with."""
    return Workshop(office.engine, office.providers, office.emails)


async def record_of(office: Office, operation: OperationId) -> OperationRecord:
    """Read what an operation's card is drawn from."""
    async with office.database.transaction() as conn:
        return await read_operation(conn, TENANT, operation)


async def _pressed(office: Office, operation: OperationId, who: PrincipalId) -> Pressed:
    click = await office.click_for(operation, who)
    return Pressed(
        TENANT,
        operation,
        click.approval_id,
        click.digest,
        click.content_revision,
        click.nonce,
        who,
        click.channel,
        click.message_ts,
        hashlib.sha256(uuid.uuid4().bytes).digest(),
        click.user_id,
    )


def _fields(pressed: Pressed) -> dict[str, Any]:
    return {name: getattr(pressed, name) for name in Pressed.__dataclass_fields__}


async def draft_for(office: Office, operation: OperationId, **changes: Any) -> ClosingDraft:
    """What the form shows first, with some of it written otherwise."""
    email = (await record_of(office, operation)).email
    assert email is not None
    return replace(draft_of(email), **changes)


async def edit_for(
    office: Office, operation: OperationId, who: PrincipalId = RENE, **changes: Any
) -> Edit:
    """What a person submits who edits what the card shows now; by default, better words."""
    draft = await draft_for(office, operation, **(changes or {"text": BETTER}))
    return Edit(**_fields(await _pressed(office, operation, who)), draft=draft)


async def again_for(office: Office, operation: OperationId, who: PrincipalId = RENE) -> AskAgain:
    """What a person presses who asks for the same again."""
    return AskAgain(**_fields(await _pressed(office, operation, who)))


async def press_edit(office: Office, asked: Edit) -> EditResult:
    """Submit an edit."""
    return await edit(workshop(office), asked)


async def press_again(office: Office, asked: AskAgain) -> AskAgainResult:
    """Press *Propose again*."""
    return await propose_again(workshop(office), asked)


async def edited(
    office: Office, operation: OperationId, who: PrincipalId = RENE, **changes: Any
) -> OperationId:
    """Edit, and return the revision that stands in its place, whose card is shown."""
    return await replaced(
        office, await press_edit(office, await edit_for(office, operation, who, **changes))
    )


async def asked_again(
    office: Office, operation: OperationId, who: PrincipalId = RENE
) -> OperationId:
    """Ask again, and return what stands in its place, whose card is shown."""
    return await replaced(
        office, await press_again(office, await again_for(office, operation, who))
    )


async def replaced(office: Office, result: EditResult) -> OperationId:
    """Find the operation that a press has made, and show its card."""
    assert isinstance(result, Replaced), result
    rows = await office.rows("SELECT id FROM operations WHERE number = :n", n=result.number)
    [(id_,)] = rows
    await office.show()
    return OperationId(id_)
