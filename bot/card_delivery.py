"""Keeps every card equal to its record: drawn, posted or updated, compared, and only then recorded.

A message is recorded before it leaves and posted once. When its answer is lost it is looked for
before another is posted. Whatever goes wrong, the card stays due; what is logged of it is Slack's
error code, the channel and the subject's id, never content.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot import replies
from bot.cards import CardPainter, Drawing, view_digest
from bot.channel_safety import SHARED, ChannelSafety
from bot.echo import is_kept
from bot.lost_posts import LOOK_AGAIN_SECONDS, LOOK_FOR, METADATA_EVENT, find_lost
from bot.replaced import replaced_message
from bot.slack_answers import LOST_CALL, Proof, Trouble, trouble
from executor.domain.errors import LostRace
from executor.domain.payloads import JsonObject
from executor.engine.card_record import OperationRecord
from executor.engine.engine import Engine
from executor.engine.presenting import (
    ClaimedCard,
    DueCard,
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

_FIRST_DELAY_SECONDS = 1.0
_LONGEST_DELAY_SECONDS = 60.0
_RUN_CARD_TRIES = 2
"""How often a run's own card is tried where it was asked for; the bot may be no member there."""

_DECIDING = frozenset({"approve", "review"})


class CardDelivery:
    """Delivers cards of one workspace; ``channel`` is where they go if nothing says otherwise."""

    def __init__(
        self,
        engine: Engine,
        client: AsyncWebClient,
        painter: CardPainter,
        channel: str,
        *,
        call_seconds: float = CALL_SECONDS,
        look_for: timedelta = LOOK_FOR,
    ) -> None:
        self._engine = engine
        self._client = client
        self._painter = painter
        self._channel = channel
        self._safety = ChannelSafety(client)
        self._call_seconds = call_seconds
        self._look_for = look_for

    async def deliver(self, due: DueCard) -> None:
        """Bring one card up to its record, or leave it due with what is in its way."""
        card = due.card
        if card.ts is None and due.lost_posting is not None:
            adopted = await self._find(due)
            if adopted is None:
                return
            card = adopted
        nonce = self._engine.mint()
        drawing = self._painter.draw(due.record, render_no=card.render_no, nonce=nonce)
        if card.channel is None or card.ts is None:
            await self._post(due, card, drawing, nonce)
        else:
            await self._update(due, card, drawing, card.channel, card.ts)

    # A message whose answer was lost

    async def _find(self, due: DueCard) -> ClaimedCard | None:
        """Look for the lost message; returns the card at its place, or unplaced if it is absent."""
        card, lost = due.card, due.lost_posting
        assert lost is not None
        _, thread_ts = self._place(due)
        try:
            async with asyncio.timeout(self._call_seconds):
                ts = await find_lost(self._client, lost, thread_ts)
        except LOST_CALL as error:
            problem = trouble(error)
            self._note(card, lost.channel, problem)
            if problem.proof is not Proof.REFUSED:
                await self._put_off(card, problem)
                return None
            # Where nobody may look, time alone has to tell.
            ts = None
        if ts is not None:
            shown = Shown(lost.view_digest, (), lost.content_revision)
            await present(self._engine, card, lost.nonce, channel=lost.channel, ts=ts, shown=shown)
            return replace(card, channel=lost.channel, ts=ts)
        lease = timedelta(seconds=self._engine.durations.outbox_lease_seconds)
        claimed_at = card.lease_until - lease
        if claimed_at - lost.attempted_at < self._look_for:
            await put_off(self._engine, card, seconds=LOOK_AGAIN_SECONDS, problem=None)
            return None
        await give_up_posting(self._engine, card, lost.nonce, PostingOutcome.ABSENT)
        return card

    # Posting

    async def _post(self, due: DueCard, card: ClaimedCard, drawing: Drawing, nonce: UUID) -> None:
        channel, thread_ts = self._place(due)
        if not await self._may_post(card, channel):
            return
        shown = _shown(due, drawing.view_digest, drawing.blocks)
        try:
            await begin_posting(self._engine, card, nonce, channel, shown)
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
                    metadata={
                        "event_type": METADATA_EVENT,
                        "event_payload": {
                            "subject": card.subject_id.hex,
                            "nonce": nonce.hex,
                            "revision": shown.content_revision,
                        },
                    },
                    unfurl_links=False,
                    unfurl_media=False,
                    parse="none",
                    link_names=False,
                )
        except LOST_CALL as error:
            await self._post_failed(card, channel, nonce, trouble(error))
            return
        place = str(answer["channel"]), str(answer["ts"])
        ours = await present(self._engine, card, nonce, channel=place[0], ts=place[1], shown=shown)
        if ours or await place_of(self._engine, card.tenant_id, card.subject_id) == place:
            await self._finish(due, card, drawing, place, answer)
            return
        # A click has adopted another message meanwhile: this one is not the card.
        await self._retire(*place)
        await put_off(self._engine, card, seconds=0, problem=None)

    async def _retire(self, channel: str, ts: str) -> None:
        text, blocks = replaced_message()
        try:
            await self._send_update(channel, ts, text, blocks)
        except LOST_CALL as error:
            _log.warning("a message that is no card was left: %s", trouble(error).code)

    async def _may_post(self, card: ClaimedCard, channel: str) -> bool:
        try:
            async with asyncio.timeout(self._call_seconds):
                shared = await self._safety.is_shared(channel)
        except LOST_CALL as error:
            problem = trouble(error)
        else:
            if not shared:
                return True
            problem = Trouble(Proof.REFUSED, SHARED)
        self._note(card, channel, problem)
        await self._put_off(card, problem)
        return False

    async def _post_failed(
        self, card: ClaimedCard, channel: str, nonce: UUID, problem: Trouble
    ) -> None:
        self._note(card, channel, problem)
        match problem.proof:
            case Proof.UNKNOWN:
                # The posting stays open: whoever claims the card next looks for it first.
                await put_off(self._engine, card, seconds=LOOK_AGAIN_SECONDS, problem=problem.code)
                return
            case Proof.REFUSED | Proof.RATE_LIMITED:
                outcome = PostingOutcome.REFUSED
            case Proof.NOT_SENT:
                outcome = PostingOutcome.ABSENT
        await give_up_posting(self._engine, card, nonce, outcome)
        await self._put_off(card, problem)

    # Updating

    async def _update(
        self, due: DueCard, card: ClaimedCard, drawing: Drawing, channel: str, ts: str
    ) -> None:
        try:
            answer = await self._send_update(channel, ts, drawing.text, drawing.blocks)
        except LOST_CALL as error:
            problem = trouble(error)
            self._note(card, channel, problem)
            if problem.message_is_gone:
                await lose_place(self._engine, card, problem.code)
            else:
                await self._put_off(card, problem)
            return
        await self._finish(due, card, drawing, (channel, ts), answer)

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
                    problem = trouble(error)
                    self._note(card, place[0], problem)
                    await self._put_off(card, problem)
                    return
        await finish_drawing(self._engine, card, _shown(due, digest, blocks))

    # Where to, and what went wrong

    def _place(self, due: DueCard) -> tuple[str, str | None]:
        """Say where a card belongs; a run's goes where it was asked for, as long as that works."""
        if due.card.kind is SubjectKind.RUN and due.card.failures < _RUN_CARD_TRIES:
            if due.thread is not None:
                return due.thread
            channel, thread_ts = due.reply_to.get("channel"), due.reply_to.get("thread_ts")
            if isinstance(channel, str):
                return channel, thread_ts if isinstance(thread_ts, str) else None
        return self._channel, None

    async def _put_off(self, card: ClaimedCard, problem: Trouble) -> None:
        seconds = problem.retry_after_seconds or min(
            _LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2 ** min(card.failures, 10)
        )
        waits = problem.proof is Proof.RATE_LIMITED
        await put_off(self._engine, card, seconds=seconds, problem=None if waits else problem.code)

    def _note(self, card: ClaimedCard, channel: str, problem: Trouble) -> None:
        refused = problem.proof is Proof.REFUSED
        _log.log(
            logging.ERROR if refused else logging.WARNING,
            "a card was not delivered (%s, %s): channel %s, %s %s",
            problem.code,
            problem.proof.value,
            channel,
            card.kind.value,
            card.subject_id,
        )


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


def _shown(due: DueCard, digest: bytes, blocks: Sequence[JsonObject]) -> Shown:
    record = due.record
    revision = record.content_revision if isinstance(record, OperationRecord) else 0
    return Shown(digest, list(blocks), revision)
