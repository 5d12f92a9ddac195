"""A message whose answer was lost is looked for, by the nonce that only it carries.

Not found is not proof: history lags behind writes. So it is looked for several times before another
message is posted, and a second card, should both turn up, names the same operation and digest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from slack_sdk.web.async_client import AsyncWebClient

from bot.delivery_troubles import DeliveryTroubles, backoff_seconds, note_undelivered
from bot.slack_answers import LOST_CALL, Proof, Scope, Trouble, trouble
from executor.engine.card_turns import DueCard, Family
from executor.engine.delivery_trouble import WORKSPACE
from executor.engine.engine import Engine
from executor.engine.presenting import (
    ClaimedCard,
    Posting,
    PostingOutcome,
    Shown,
    give_up_posting,
    present,
    put_off,
)

METADATA_EVENT = "signoff_card"
LOOK_FOR = timedelta(seconds=8)
"""How long after the attempt a message is looked for before it counts as absent."""

LOOK_AT_MOST = timedelta(minutes=3)
"""How long a message is looked for where Slack lets nobody look so often."""

LOOK_AGAIN_SECONDS = 1.0
_BEFORE = timedelta(seconds=120)
_PAGE = 100
_MOST_PAGES = 10
"""History shows the newest first, by 100 or, to some apps, by 15 (docs.slack.dev, 2025-05)."""


class LostPosts:
    """Looks for the messages of cards whose answers were lost."""

    def __init__(
        self,
        engine: Engine,
        client: AsyncWebClient,
        troubles: DeliveryTroubles,
        *,
        call_seconds: float,
        look_for: timedelta,
    ) -> None:
        self._engine = engine
        self._client = client
        self._troubles = troubles
        self._call_seconds = call_seconds
        self._look_for = look_for

    async def look(self, card: ClaimedCard, nonce: UUID, due: DueCard) -> None:
        """Look once: the message is adopted, looked for again later, or counts as absent."""
        lost = due.lost_posting
        if lost is not None:
            lease = timedelta(seconds=self._engine.durations.outbox_lease_seconds)
            waited = card.lease_until - lease - lost.attempted_at
            try:
                async with asyncio.timeout(self._call_seconds):
                    ts = await find_lost(self._client, lost)
            except LOST_CALL as error:
                if await self._may_tell_later(card, lost, trouble(error), waited):
                    return
                ts = None
            if ts is not None:
                shown = Shown(lost.view_digest, (), lost.content_revision)
                await present(self._engine, card, nonce, channel=lost.channel, ts=ts, shown=shown)
                # It is drawn again in a turn of its own: its record may have changed.
                await put_off(self._engine, card, seconds=0, problem=None)
                await self._troubles.arrived(due.troubles & {WORKSPACE, lost.channel})
                return
            if waited < self._look_for:
                await put_off(self._engine, card, seconds=LOOK_AGAIN_SECONDS, problem=None)
                return
        await give_up_posting(self._engine, card, nonce, PostingOutcome.ABSENT)
        await put_off(self._engine, card, seconds=0, problem=None)

    async def _may_tell_later(
        self, card: ClaimedCard, lost: Posting, problem: Trouble, waited: timedelta
    ) -> bool:
        """Put a card off whose message could not be looked for; ``False``: time alone has to tell,
        because nobody may look.
        """
        note_undelivered(card, lost.channel, problem)
        match problem.proof:
            case Proof.RATE_LIMITED:
                await self._troubles.hold(Family.SEARCH, problem)
                if waited >= LOOK_AT_MOST:
                    return False
                await put_off(self._engine, card, seconds=0, problem=None)
            case Proof.UNKNOWN | Proof.NOT_SENT:
                seconds = backoff_seconds(card)
                await put_off(self._engine, card, seconds=seconds, problem=problem.code)
            case Proof.REFUSED:
                if problem.scope is not Scope.WORKSPACE or problem.code == "missing_scope":
                    return False
                await self._troubles.close(card, lost.channel, problem)
        return True


async def find_lost(client: AsyncWebClient, posting: Posting) -> str | None:
    """Return the ts of the message that a posting left, or ``None``; raises what the SDK does.

    The two clocks may differ, so the search begins two minutes before the attempt.
    """
    oldest = f"{(posting.attempted_at - _BEFORE).timestamp():.6f}"
    cursor = ""
    for _ in range(_MOST_PAGES):
        if posting.thread_ts is None:
            answer = await client.conversations_history(
                channel=posting.channel,
                oldest=oldest,
                limit=_PAGE,
                cursor=cursor,
                include_all_metadata=True,
            )
        else:
            answer = await client.conversations_replies(
                channel=posting.channel,
                ts=posting.thread_ts,
                oldest=oldest,
                limit=_PAGE,
                cursor=cursor,
                include_all_metadata=True,
            )
        for message in answer.get("messages") or ():
            if isinstance(message, Mapping) and _bears(message, posting.nonce.hex):
                return str(message["ts"])
        following = answer.get("response_metadata") or {}
        cursor = str(following.get("next_cursor") or "")
        if not cursor:
            return None
    return None


def _bears(message: Mapping[str, object], nonce: str) -> bool:
    """Say whether our own message carries the nonce, in its metadata or its blocks' ids."""
    if "bot_id" not in message:
        return False
    metadata = message.get("metadata")
    if isinstance(metadata, Mapping):
        payload = metadata.get("event_payload")
        if isinstance(payload, Mapping) and payload.get("nonce") == nonce:
            return True
    blocks = message.get("blocks")
    return isinstance(blocks, Sequence) and any(
        isinstance(block, Mapping) and str(block.get("block_id", "")).endswith(f".{nonce}")
        for block in blocks
    )
