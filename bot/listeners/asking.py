"""Questions to the agent: a button opens a form, the form asks.

The button alone records nothing. Submitting the form is one call to the engine, before the ack;
what was typed is not lost where it cannot be recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from slack_bolt.async_app import AsyncAck

from bot import replies
from bot.ask_origin import AskOrigin
from bot.cards import CardPainter
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
from bot.notice_text import refusal_text
from bot.operation_value import operation_of
from bot.stopping_replies import question_wanted
from bot.whisper import Whisperer
from executor.domain.errors import DatabaseUnavailable
from executor.domain.ids import OperationId, TenantId
from executor.domain.transition import Reason, Refused
from executor.engine.asking import Ask, AskResult, ask, objection_to_asking, read_back
from executor.engine.engine import Engine

QUESTION_BLOCK = "question"
QUESTION_INPUT = "text"


class Asking:
    """Takes the questions of one process, many in one commit.

    ``outdated`` answers a button whose value is not ours.
    """

    def __init__(
        self,
        engine: Engine,
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
        self._engine = engine
        self._tenant = tenant
        self._people = people
        self._pressing = pressing
        self._views = views
        self._painter = painter
        self._opener = opener
        self._whisperer = whisperer
        self._outdated = outdated
        self._recording: Recording[Ask, AskResult] = Recording(
            partial(ask, engine), partial(read_back, engine), people, whisperer, kept
        )

    async def ask(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Open the form for whoever may ask now; tell all others why not."""
        click = read_click(body)
        if click is None or not self._pressing.is_ours(click):
            await ack()
            return
        operation = operation_of(click.action.value)
        if operation is None:
            await self._outdated(ack, body)
            return
        await self._open_form(click, operation)
        await ack()

    async def submitted(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Record the question that a submitted form asks; a refusal is told in the form."""
        submitted = read_submission(body)
        origin = None if submitted is None else AskOrigin.decode(submitted.view.private_metadata)
        if submitted is None or origin is None or not submitted.is_for(self._tenant):
            await keep_open(ack, QUESTION_BLOCK, replies.outdated_card())
            return
        question = submitted.typed(QUESTION_BLOCK, QUESTION_INPUT)
        if not question:
            await keep_open(ack, QUESTION_BLOCK, question_wanted())
            return
        asked = Ask(
            tenant_id=self._tenant,
            operation_id=origin.operation,
            principal=submitted.principal(self._tenant),
            question=question,
            channel=origin.channel,
            user_id=submitted.user.id,
            request_hash=context[REQUEST_HASH],
        )
        try:
            result = await self._recording.record(asked)
        except DatabaseUnavailable:
            await keep_open(ack, QUESTION_BLOCK, replies.database_away())
            return
        problem = problem_of(result)
        if problem is None:
            await ack()
        else:
            await keep_open(ack, QUESTION_BLOCK, problem)

    async def idle(self) -> None:
        """Wait until every question that was taken has been answered."""
        await self._recording.idle()

    async def _open_form(self, click: ButtonClick, operation: OperationId) -> None:
        place = await self._pressing.place(click, operation)
        acting = await self._people.acting(click.principal(self._tenant))
        if acting is None:
            self._whisperer.say(place.told_in, click.user.id, replies.identity_unverified())
            return
        objection = await self._recording.read(
            objection_to_asking(self._engine, self._tenant, acting, operation)
        )
        record = None if objection is not None else await self._views.record_of(operation)
        if record is None:
            refused = objection or Refused(Reason.CONTENT_CHANGED)
            text = refusal_text(refused.reason, refused.detail)
            self._whisperer.say(place.told_in, click.user.id, text)
            return
        origin = AskOrigin(operation, place.told_in)
        await self._opener.open(click, self._painter.draw_ask_form(record, origin))
