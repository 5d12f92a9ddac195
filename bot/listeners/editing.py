"""Edits of what waits: a button opens the form, and submitting the form is the edit.

The button alone records nothing but a refusal. What was typed is not lost where it cannot be taken:
the form stays, with each problem under the input that it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from slack_bolt.async_app import AsyncAck

from bot import replies
from bot.button_value import ButtonValue
from bot.cards import CardPainter
from bot.edit_form import INPUT, TO_BLOCK, edit_form, errors_of, read_draft
from bot.edit_origin import EditOrigin
from bot.identity import IdentityWatch
from bot.ingress.handler import REQUEST_HASH
from bot.kept_work import KeptWork
from bot.listeners.clicks import read_click
from bot.listeners.form_answers import keep_open, problem_of
from bot.listeners.full_views import FullViews
from bot.listeners.opening_views import ViewOpener
from bot.listeners.payload import ButtonClick
from bot.listeners.pressing import Outdated, Pressing
from bot.listeners.recording import Recording
from bot.listeners.views import read_submission
from bot.reason_text import sentence
from bot.whisper import Whisperer
from executor.domain.closing_draft import ClosingDraft
from executor.domain.errors import DatabaseUnavailable
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.transition import Reason, Refused
from executor.engine.editing import edit
from executor.engine.engine import Engine
from executor.engine.pressing import read_back
from executor.engine.replacement import Edit, EditResult, MayBeEdited
from executor.engine.replacement_scene import Workshop

_ASK_BY_SECONDS = 0.9
"""Opening the form needs the rest of the trigger's three seconds."""


class Editing:
    """Takes the edits of one process.

    ``outdated`` answers a button whose value is not ours. Without a ``shop`` nobody can edit here.
    """

    def __init__(
        self,
        engine: Engine,
        shop: Workshop | None,
        tenant: TenantId,
        people: IdentityWatch,
        pressing: Pressing,
        views: FullViews,
        painter: CardPainter,
        opener: ViewOpener,
        whisperer: Whisperer,
        kept: KeptWork,
        outdated: Outdated,
    ) -> None:
        self._shop = shop
        self._tenant = tenant
        self._pressing = pressing
        self._views = views
        self._painter = painter
        self._opener = opener
        self._whisperer = whisperer
        self._outdated = outdated
        self._recording: Recording[Edit, EditResult] = Recording(
            self._edit, partial(read_back, engine), people, whisperer, kept, most=1
        )

    async def ask(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Open the form for whoever may edit; else say, on record, why not."""
        click = read_click(body)
        if click is None or not self._pressing.is_ours(click):
            await ack()
            return
        value = ButtonValue.decode(click.action.value)
        if value is None:
            await self._outdated(ack, body)
            return
        if self._shop is None:
            self._say(click, replies.cannot_edit_here())
            await ack()
            return
        origin = EditOrigin(value, click.container.channel_id, click.container.message_ts)
        asked = self._asked(origin, click.principal(self._tenant), click.user.id, context, None)
        result = await self._recording.record(
            asked, within=_ASK_BY_SECONDS, unconfirmed=replies.view_not_opened()
        )
        if isinstance(result, MayBeEdited):
            await self._open(click, origin)
        await ack()

    async def submitted(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Take what a submitted form says, or keep the form open and tell why not."""
        submission = read_submission(body)
        origin = None
        if submission is not None:
            origin = EditOrigin.decode(submission.view.private_metadata)
        if submission is None or origin is None or not submission.is_for(self._tenant):
            await keep_open(ack, TO_BLOCK, replies.outdated_card())
            return
        if self._shop is None:
            await keep_open(ack, TO_BLOCK, replies.cannot_edit_here())
            return
        draft = read_draft(lambda block: submission.written(block, INPUT), origin.joins)
        who = submission.principal(self._tenant)
        try:
            result = await self._recording.record(
                self._asked(origin, who, submission.user.id, context, draft)
            )
        except DatabaseUnavailable:
            await keep_open(ack, TO_BLOCK, replies.database_away())
            return
        await _answer(ack, result)

    async def idle(self) -> None:
        """Wait until every edit that was taken has been answered."""
        await self._recording.idle()

    async def _edit(self, asked: Sequence[Edit]) -> list[EditResult]:
        """Take one edit; each has a commit of its own."""
        assert self._shop is not None, "nobody is asked for an edit otherwise"
        [one] = asked
        return [await edit(self._shop, one)]

    async def _open(self, click: ButtonClick, origin: EditOrigin) -> None:
        record = await self._views.record_of(origin.value.operation)
        if record is None or record.digest != origin.value.digest:
            self._say(click, sentence(Reason.CONTENT_CHANGED, {}))
            return
        form = edit_form(record)
        if form is None:
            self._say(click, replies.too_long_to_edit())
            return
        origin = EditOrigin(origin.value, origin.channel, origin.message_ts, form.joins)
        await self._opener.open(click, self._painter.draw_edit_form(form, origin))

    def _asked(
        self,
        origin: EditOrigin,
        principal: PrincipalId,
        user_id: str,
        context: Mapping[str, Any],
        draft: ClosingDraft | None,
    ) -> Edit:
        return Edit(
            self._tenant,
            origin.value.operation,
            origin.value.approval,
            origin.value.digest,
            origin.value.content_revision,
            origin.value.nonce,
            principal,
            origin.channel,
            origin.message_ts,
            context[REQUEST_HASH],
            user_id,
            draft,
        )

    def _say(self, click: ButtonClick, text: str) -> None:
        self._whisperer.say(click.container.channel_id, click.user.id, text)


async def _answer(ack: AsyncAck, result: EditResult) -> None:
    """Close the form where the edit was taken or changes nothing; else tell why it was not."""
    errors = errors_of(result.detail.get("problems")) if isinstance(result, Refused) else None
    problem = problem_of(result)
    if errors:
        await ack(response_action="errors", errors=errors)
    elif problem is not None:
        await keep_open(ack, TO_BLOCK, problem)
    else:
        await ack()
