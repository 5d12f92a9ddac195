"""Keeps every card equal to its record: drawn, posted or updated, compared, and only then recorded.

A message is recorded before it leaves and posted once. When its answer is lost it is looked for
before another is posted. Whatever goes wrong, the card stays due; what is logged of it is Slack's
error code, the channel and the subject's id, never content. A rate limit is no failure: it holds
the family of calls back, for all processes, and the card keeps its place in the line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot import replies
from bot.agent_answers import RESULT_EVENT, result_of
from bot.cards import CardPainter, Drawing, view_digest
from bot.channel_safety import ChannelSafety
from bot.delivery_troubles import DeliveryTroubles, backoff_seconds, note_undelivered
from bot.echo import is_kept
from bot.lost_posts import LOOK_AGAIN_SECONDS, LOOK_FOR, METADATA_EVENT, LostPosts
from bot.replaced import replaced_message
from bot.slack_answers import LOST_CALL, SHARED, Proof, Scope, Trouble, trouble
from executor.domain.errors import LostRace
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.engine.card_record import CardRecord, OperationRecord
from executor.engine.card_turns import Delivery, DueCard, Family, due_cards
from executor.engine.delivery_trouble import WORKSPACE
from executor.engine.engine import Engine
from executor.engine.presenting import (
    ClaimedCard,
    PostingOutcome,
    Shown,
    SubjectKind,
    begin_posting,
    finish_drawing,
    give_up_posting,
    lose_place,
    present,
    put_off,
)
from executor.engine.redrawing import place_of

_log = logging.getLogger(__name__)

CALL_SECONDS = 6.0
"""Longest time for one call; the four that a card may need fit into its lease."""

LOOK_AGAIN_SECONDS_AT_MOST = 600.0
"""A card that waits for a decision is drawn again after this time, or a quarter of the time there
is to decide: if its message was deleted, or its channel is gone or shared, that is noticed while it
can still be decided."""

_LOOK_AGAIN_SECONDS_AT_LEAST = 60.0

_DECIDING = frozenset({"approve", "review"})
_NOT_UNDERSTOOD = frozenset({"invalid_blocks", "invalid_blocks_format"})
_MOST_PLAIN = 1_000
"""Cards that this process remembers to draw plain; one that is forgotten is refused once more."""


class CardDelivery:
    """Delivers the cards of one workspace as ``delivery`` says."""

    def __init__(
        self,
        engine: Engine,
        client: AsyncWebClient,
        painter: CardPainter,
        delivery: Delivery,
        *,
        call_seconds: float = CALL_SECONDS,
        look_for: timedelta = LOOK_FOR,
    ) -> None:
        self.delivery = delivery
        self._engine = engine
        self._client = client
        self._painter = painter
        self._safety = ChannelSafety(client)
        self.troubles = DeliveryTroubles(engine, client, delivery, self._safety)
        self._lost = LostPosts(
            engine, client, self.troubles, call_seconds=call_seconds, look_for=look_for
        )
        self._call_seconds = call_seconds
        self._again_in: float | None = None
        self._plain: dict[UUID, None] = {}

    async def take(self, most: int) -> Sequence[DueCard]:
        """Take the cards whose turn it is."""
        taken = await due_cards(self._engine, self.delivery, most)
        self._again_in = None if taken.again_in is None else taken.again_in.total_seconds()
        return taken.cards

    def again_in(self) -> float | None:
        """Say in how many seconds there will be another turn, if that is known."""
        return self._again_in

    async def deliver(self, due: DueCard) -> None:
        """Bring one card up to its record, or leave it due with what is in its way."""
        card = due.card
        if card.ts is None and card.posting_nonce is not None:
            await self._lost.look(card, card.posting_nonce, due)
            return
        nonce = self._engine.mint()
        plain = card.subject_id in self._plain
        drawing = self._painter.draw(due.record, render_no=card.render_no, nonce=nonce, plain=plain)
        if card.channel is not None and card.ts is not None:
            await self._update(due, card, drawing, card.channel, card.ts)
        elif due.turn is not None:
            await self._post(due, card, drawing, nonce)
        else:
            # It has lost its message since its turn was given out.
            await put_off(self._engine, card, seconds=0, problem=None)

    # Posting

    async def _post(self, due: DueCard, card: ClaimedCard, drawing: Drawing, nonce: UUID) -> None:
        assert due.turn is not None
        channel, thread_ts = due.turn.channel, due.turn.thread_ts
        if not await self._may_post(card, channel):
            return
        shown = _shown(due, drawing.view_digest, drawing.blocks)
        try:
            await begin_posting(self._engine, card, nonce, channel, shown, thread_ts=thread_ts)
        except LostRace:
            # A click has placed the card meanwhile; it is due again and is updated there.
            await put_off(self._engine, card, seconds=0, problem=None)
            return
        try:
            async with asyncio.timeout(self._call_seconds):
                answer = await self._client.chat_postMessage(
                    channel=channel,
                    thread_ts=thread_ts,
                    text=drawing.text,
                    blocks=[dict(block) for block in drawing.blocks],
                    metadata=_metadata(due, nonce, shown),
                    unfurl_links=False,
                    unfurl_media=False,
                    parse="none",
                    link_names=False,
                )
        except LOST_CALL as error:
            problem = trouble(error)
            if self._is_drawn_plain_now(card, drawing, problem):
                await give_up_posting(self._engine, card, nonce, PostingOutcome.REFUSED)
                await put_off(self._engine, card, seconds=0, problem=None)
            else:
                await self._post_failed(card, channel, nonce, problem)
            return
        place = str(answer["channel"]), str(answer["ts"])
        ours = await present(self._engine, card, nonce, channel=place[0], ts=place[1], shown=shown)
        if ours or await place_of(self._engine, card.tenant_id, card.subject_id) == place:
            await self._finish(due, card, drawing, place, answer)
            await self.troubles.arrived(due.troubles & {WORKSPACE, channel})
            return
        # A click has adopted another message meanwhile: this one is not the card.
        await self._retire(*place)
        await put_off(self._engine, card, seconds=0, problem=None)

    async def _retire(self, channel: str, ts: str) -> bool:
        text, blocks = replaced_message()
        try:
            await self._send_update(channel, ts, text, blocks)
        except LOST_CALL as error:
            problem = trouble(error)
            _log.warning("a message that is no card was left: %s", problem.code)
            return problem.message_is_gone
        return True

    async def _may_post(self, card: ClaimedCard, channel: str) -> bool:
        try:
            async with asyncio.timeout(self._call_seconds):
                objection = await self._safety.objection(channel)
        except LOST_CALL as error:
            problem = trouble(error)
        else:
            if objection is None:
                return True
            problem = Trouble(Proof.REFUSED, objection)
        note_undelivered(card, channel, problem)
        if problem.proof is Proof.RATE_LIMITED:
            # Without an answer nothing may be posted, so that posts wait as long.
            await self.troubles.hold(Family.POST, problem)
            await put_off(self._engine, card, seconds=0, problem=None)
        else:
            await self.troubles.close(card, channel, problem)
        return False

    async def _post_failed(
        self, card: ClaimedCard, channel: str, nonce: UUID, problem: Trouble
    ) -> None:
        note_undelivered(card, channel, problem)
        match problem.proof:
            case Proof.UNKNOWN:
                # The posting stays open: whoever claims the card next looks for it first.
                if card.failures:
                    await self.troubles.note(channel, problem)
                await put_off(self._engine, card, seconds=LOOK_AGAIN_SECONDS, problem=problem.code)
            case Proof.RATE_LIMITED:
                await give_up_posting(self._engine, card, nonce, PostingOutcome.REFUSED)
                await self.troubles.hold(Family.POST, problem)
                await put_off(self._engine, card, seconds=0, problem=None)
            case Proof.NOT_SENT:
                await give_up_posting(self._engine, card, nonce, PostingOutcome.ABSENT)
                await self.troubles.close(card, channel, problem)
            case Proof.REFUSED:
                await give_up_posting(self._engine, card, nonce, PostingOutcome.REFUSED)
                if problem.scope is Scope.MESSAGE:
                    await put_off(
                        self._engine, card, seconds=backoff_seconds(card), problem=problem.code
                    )
                else:
                    await self.troubles.close(card, channel, problem)

    # Updating

    async def _update(
        self, due: DueCard, card: ClaimedCard, drawing: Drawing, channel: str, ts: str
    ) -> None:
        if await self._is_shared(channel):
            note_undelivered(card, channel, Trouble(Proof.REFUSED, SHARED))
            if await self._retire(channel, ts):
                await lose_place(self._engine, card, SHARED)
            else:
                await put_off(self._engine, card, seconds=backoff_seconds(card), problem=SHARED)
            return
        if due.card.kind is SubjectKind.RUN and card.view_digest == drawing.view_digest:
            # It follows whatever its operations' cards show, of which little stands on it.
            await self._record_drawing(due, card, drawing.view_digest, drawing.blocks)
            return
        try:
            answer = await self._send_update(channel, ts, drawing.text, drawing.blocks)
        except LOST_CALL as error:
            problem = trouble(error)
            if self._is_drawn_plain_now(card, drawing, problem):
                await put_off(self._engine, card, seconds=0, problem=None)
            else:
                await self._update_failed(card, channel, problem)
            return
        await self._finish(due, card, drawing, (channel, ts), answer)
        await self.troubles.arrived(due.troubles & {WORKSPACE})

    async def _is_shared(self, channel: str) -> bool:
        """Say whether others read along by now; where Slack does not say, the card stays."""
        try:
            async with asyncio.timeout(self._call_seconds):
                return await self._safety.objection(channel) == SHARED
        except LOST_CALL:
            return False

    async def _update_failed(self, card: ClaimedCard, channel: str, problem: Trouble) -> None:
        note_undelivered(card, channel, problem)
        if problem.proof is Proof.RATE_LIMITED:
            await self.troubles.hold(Family.UPDATE, problem)
            await put_off(self._engine, card, seconds=0, problem=None)
        elif problem.message_is_gone:
            if problem.scope is not Scope.MESSAGE:
                await self.troubles.note(channel, problem)
            await lose_place(self._engine, card, problem.code)
        elif problem.scope is Scope.WORKSPACE:
            await self.troubles.close(card, channel, problem)
        else:
            await put_off(self._engine, card, seconds=backoff_seconds(card), problem=problem.code)

    async def _send_update(
        self, channel: str, ts: str, text: str, blocks: Sequence[JsonObject]
    ) -> AsyncSlackResponse:
        async with asyncio.timeout(self._call_seconds):
            return await self._client.chat_update(
                channel=channel,
                ts=ts,
                text=text,
                blocks=[dict(block) for block in blocks],
                parse="none",
                link_names=False,
            )

    async def _finish(
        self,
        due: DueCard,
        card: ClaimedCard,
        drawing: Drawing,
        place: tuple[str, str],
        answer: AsyncSlackResponse,
    ) -> None:
        """Compare what Slack shows with what was sent, and record what people see."""
        blocks, digest = drawing.blocks, drawing.view_digest
        message = answer.get("message") or {}
        if not is_kept(drawing.blocks, message.get("blocks")):
            _log.error(
                "Slack shows a card otherwise than it was sent: channel %s, %s %s",
                place[0],
                card.kind.value,
                card.subject_id,
            )
            if drawing.approvable or drawing.needs_full_view:
                blocks = without_approve(drawing.blocks)
                digest = view_digest(blocks)
                try:
                    await self._send_update(*place, drawing.text, blocks)
                except LOST_CALL as error:
                    await self._update_failed(card, place[0], trouble(error))
                    return
        await self._record_drawing(due, card, digest, blocks)

    async def _record_drawing(
        self, due: DueCard, card: ClaimedCard, digest: bytes, blocks: Sequence[JsonObject]
    ) -> None:
        rests = self.delivery.paces.rests if card.kind is SubjectKind.RUN else timedelta()
        await finish_drawing(
            self._engine,
            card,
            _shown(due, digest, blocks),
            look_again_seconds=_look_again_seconds(due.record),
            rest_seconds=rests.total_seconds() or None,
        )

    def _is_drawn_plain_now(self, card: ClaimedCard, drawing: Drawing, problem: Trouble) -> bool:
        """Draw a card plain from now on whose plan this workspace does not understand."""
        if problem.code not in _NOT_UNDERSTOOD or not drawing.holds_plan:
            return False
        _log.warning("Slack does not take a plan here, so that it is drawn plain: %s", problem.code)
        self._plain[card.subject_id] = None
        if len(self._plain) > _MOST_PLAIN:
            del self._plain[next(iter(self._plain))]
        return True


def without_approve(blocks: Sequence[JsonObject]) -> list[JsonObject]:
    """Take what leads to an approval off a card and say why."""
    kept: list[JsonObject] = []
    for block in blocks:
        if block.get("type") != "actions":
            kept.append(block)
            continue
        buttons = block["elements"]
        assert isinstance(buttons, list)
        left = [button for button in buttons if button["action_id"] not in _DECIDING]
        if left:
            kept.append({**block, "elements": left})
    text: JsonObject = {"type": "plain_text", "text": replies.shown_otherwise(), "emoji": False}
    return [*kept, {"type": "context", "elements": [text]}]


def _metadata(due: DueCard, nonce: UUID, shown: Shown) -> dict[str, object]:
    """Name the message for ourselves, and tell programs what came of what they asked for."""
    result = result_of(due.record)
    return {
        "event_type": METADATA_EVENT if result is None else RESULT_EVENT,
        "event_payload": {
            **(result or {}),
            "subject": due.card.subject_id.hex,
            "nonce": nonce.hex,
            "revision": shown.content_revision,
        },
    }


def _shown(due: DueCard, digest: bytes, blocks: Sequence[JsonObject]) -> Shown:
    record = due.record
    revision = record.content_revision if isinstance(record, OperationRecord) else 0
    return Shown(digest, list(blocks), revision)


def _look_again_seconds(record: CardRecord) -> float | None:
    """Say when a shown card is drawn again, or ``None`` for one that nobody waits for."""
    if not isinstance(record, OperationRecord) or record.status is not OperationStatus.AWAITING:
        return None
    quarter = max(record.approval.decide_within_seconds / 4, _LOOK_AGAIN_SECONDS_AT_LEAST)
    return min(quarter, LOOK_AGAIN_SECONDS_AT_MOST)
