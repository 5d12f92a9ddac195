"""The same is proposed again when its ticket has moved on, for the ticket as it is now.

What waited ends as out of date and a new operation takes its place, through the checks of every
proposal and with a card of its own. Whoever asked for it first is the requester still; whoever
pressed counts as one too and may not approve it alone. If the run waits for it, its tool call waits
for the new one instead; if the model was told already, or the run has ended, the new operation
lives in a run that nobody drives. Locks: see ``replacement_scene``.
"""

from __future__ import annotations

from functools import partial

from executor.domain import approval, operation
from executor.domain.closing_draft import draft_of
from executor.domain.errors import InvalidContent
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.policy import Permission
from executor.domain.stamp import DeskVersion
from executor.domain.ticket import BUILTIN_DESK, TicketStatus
from executor.domain.transition import Reason, Refused
from executor.engine.failpoint import Commit
from executor.engine.pressing import press
from executor.engine.replacement import AskAgain, AskAgainResult, EditResult, MayBeEdited, Replaced
from executor.engine.replacement_scene import (
    Scene,
    Workshop,
    objection_to_person,
    objection_to_repeat,
    objection_to_sight,
    objection_to_view,
    refusal_of_ended,
    requester_objection,
)
from executor.engine.replacing import replace
from executor.engine.revalidation import notification_objection


async def propose_again(shop: Workshop, asked: AskAgain) -> AskAgainResult:
    """Propose what was shown again, for the ticket's version of now, in one commit.

    Opens its own transactions. A second press answers with the number of what the first one made.
    Raises ``CommitUnknown``: see ``pressing.read_back``.
    """
    result = await press(shop, Commit.PROPOSE_AGAIN, asked, partial(_judge, asked))
    assert not isinstance(result, MayBeEdited)
    return result


async def _judge(asked: AskAgain, scene: Scene) -> EditResult:
    refused = _objection_to_person(scene) or objection_to_view(scene)
    if refused is not None:
        return refused
    row, after = scene.row, scene.successor
    if after is not None and row.status is OperationStatus.STALE:
        return Replaced(after.number, after.content_revision, before=True)
    refused = _objection(scene)
    if refused is not None:
        return refused
    moved: JsonObject = {"approved": row.ticket_version, "version": scene.found.ticket.version}
    told: JsonObject = {
        "asked_again_by": asked.principal,
        "request": asked.request_hash.hex(),
        "view_digest": None if scene.view is None else scene.view.hex(),
    }
    try:
        return await replace(
            scene,
            draft_of(scene.email),
            editor=row.editor,
            asker=asked.principal,
            stale=operation.RevalidationFailed(Refused(Reason.VERSION_CHANGED, moved)),
            told=told,
            origin=f"proposed_again:{row.id}",
        )
    except InvalidContent as problem:
        detail: JsonObject = {"field": problem.field, "problem": problem.problem}
        return Refused(Reason.CONTENT_INVALID, detail)


def _objection_to_person(scene: Scene) -> Refused | None:
    """Whoever may ask, or may approve, may ask again."""
    who, resource = scene.pressed.principal, scene.row.resource
    objections = [
        scene.authority.objection(who, permission, resource)
        for permission in (Permission.REQUEST, Permission.APPROVE)
    ]
    return (objections[0] if all(objections) else None) or objection_to_person(scene)


def _objection(scene: Scene) -> Refused | None:
    """Say why it is not proposed again, or ``None``."""
    row = scene.row
    waits = row.status is OperationStatus.AWAITING
    over = approval.decide(scene.consent, approval.TimePassed(), now=scene.chain.now)
    if waits and isinstance(over, approval.Moved):
        return Refused(Reason.EXPIRED)
    outdated = row.status is OperationStatus.STALE and row.reason is Reason.VERSION_CHANGED
    if not (waits or outdated):
        return refusal_of_ended(scene)
    return (
        requester_objection(scene)
        or objection_to_sight(scene)
        or _objection_to_ticket(scene, waits=waits)
        or objection_to_repeat(scene)
        or _objection_to_desk(scene)
    )


def _objection_to_desk(scene: Scene) -> Refused | None:
    if scene.row.desk == BUILTIN_DESK:
        return None
    return notification_objection(scene.policy, scene.shop.providers.desk)


def _objection_to_ticket(scene: Scene, *, waits: bool) -> Refused | None:
    row, target = scene.row, scene.target
    if target is None:
        return Refused(Reason.TICKET_UNKNOWN, {"ticket": row.ticket_id})
    if target.ticket.status is TicketStatus.CLOSED:
        return Refused(Reason.TICKET_CLOSED, {"ticket": row.ticket_id})
    proposed: DeskVersion = row.ticket_stamp or row.ticket_version
    if waits and target.version == proposed:
        return Refused(Reason.NOT_OUT_OF_DATE)
    return None
