"""A person edits what waits for approval: a new revision, which takes the place of the one shown.

It is checked as a click is, and its content as a proposal is. The text is edited as the customer
reads it, greeting and signature included; only the HTML is made anew from it. Votes on the revision
before are void, whoever edited may not approve, and no rule lets the new one go by itself: it needs
at least the votes that ``[approval]`` asks for. Its run goes on waiting. Locks: see
``replacement_scene``.
"""

from __future__ import annotations

from functools import partial

from executor.domain import approval
from executor.domain.closing_draft import ClosingDraft, problems_of, says_the_same
from executor.domain.errors import InvalidContent
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.policy import Permission
from executor.domain.ticket import BUILTIN_DESK
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.failpoint import Commit
from executor.engine.outside_target import outside_objection
from executor.engine.pressing import press
from executor.engine.replacement import Edit, EditResult, MayBeEdited
from executor.engine.replacement_scene import (
    Scene,
    Workshop,
    objection_to_person,
    objection_to_sight,
    objection_to_view,
    refusal_of_ended,
    requester_objection,
)
from executor.engine.replacing import replace
from executor.engine.revalidation import notification_objection, run_objection, target_objection


async def edit(shop: Workshop, asked: Edit) -> EditResult:
    """Put the edited revision in the place of the one that was shown, in one commit.

    Opens its own transactions. Without a draft nothing is stored but a refusal. Content that cannot
    be sent is refused with ``problems`` in its detail: ``[{"field": "to", "problem": "…",
    "remedy": "…"}]``. Raises ``CommitUnknown``: see ``pressing.read_back``.
    """
    drafted = asked.draft is not None
    return await press(shop, Commit.EDIT, asked, partial(_judge, asked), looks=drafted)


async def _judge(asked: Edit, scene: Scene) -> EditResult:
    refused = _objection(scene) or (None if asked.draft is None else _objection_to_ticket(scene))
    if refused is not None:
        return refused
    if asked.draft is None:
        return MayBeEdited()
    draft = asked.draft.tidy
    problems = problems_of(scene.policy, draft)
    if problems:
        return _invalid(problems)
    if says_the_same(draft, scene.email):
        return NoChange(Reason.NOTHING_EDITED)
    return await _replace(asked, scene, draft)


def _objection(scene: Scene) -> Refused | None:
    """Say why this person may not edit this: the person first, then what is edited."""
    row, who = scene.row, scene.pressed.principal
    about_the_person = scene.authority.objection(
        who, Permission.EDIT, row.resource
    ) or objection_to_person(scene)
    if about_the_person is not None:
        return about_the_person
    if row.status is not OperationStatus.AWAITING:
        return refusal_of_ended(scene)
    shown = objection_to_view(scene)
    if shown is not None:
        return shown
    over = approval.decide(scene.consent, approval.TimePassed(), now=scene.chain.now)
    if isinstance(over, approval.Moved):
        return Refused(Reason.EXPIRED)
    if run_objection(scene.run.status, first=True) is not None:
        return Refused(Reason.RUN_ENDING)
    return requester_objection(scene)


def _objection_to_ticket(scene: Scene) -> Refused | None:
    """Say why the ticket does not stand as it was proposed, or why nobody knows whether it does."""
    row = scene.row
    if row.desk == BUILTIN_DESK:
        ticket = None if scene.target is None else scene.target.ticket
        return target_objection(ticket, row.ticket_id, row.ticket_version, first=True)
    unseen = objection_to_sight(scene)
    if unseen is not None or scene.sight is None:
        return unseen
    moved = outside_objection(row, scene.sight, (), (), first=True)
    return moved or notification_objection(scene.policy, scene.shop.providers.desk)


async def _replace(asked: Edit, scene: Scene, draft: ClosingDraft) -> EditResult:
    told: JsonObject = {
        "edited_by": asked.principal,
        "request": asked.request_hash.hex(),
        "view_digest": None if scene.view is None else scene.view.hex(),
    }
    try:
        return await replace(
            scene,
            draft,
            editor=asked.principal,
            asker=None,
            stale=None,
            told=told,
            origin=f"edit:{scene.row.id}",
        )
    except InvalidContent as problem:
        # Whoever carries the mail may take less than the rules for all of them do.
        return _invalid([problem])


def _invalid(problems: list[InvalidContent]) -> Refused:
    told: list[JsonValue] = [
        {"field": p.field, "problem": p.problem, "remedy": p.remedy} for p in problems
    ]
    return Refused(Reason.CONTENT_INVALID, {"problems": told})
