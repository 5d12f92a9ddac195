"""A message whose answer was lost is looked for, by the nonce that only it carries.

Not found is not proof: history lags behind writes. So it is looked for several times before another
message is posted, and a second card, should both turn up, names the same operation and digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from slack_sdk.web.async_client import AsyncWebClient

from executor.engine.presenting import Posting

METADATA_EVENT = "signoff_card"
LOOK_FOR = timedelta(seconds=8)
"""How long after the attempt a message is looked for before it counts as absent."""

LOOK_AGAIN_SECONDS = 1.0
_BEFORE = timedelta(seconds=120)
_PAGE = 100
_MOST_PAGES = 5


async def find_lost(client: AsyncWebClient, posting: Posting, thread_ts: str | None) -> str | None:
    """Return the ts of the message that a posting left, or ``None``; raises what the SDK does.

    The two clocks may differ, so the search begins two minutes before the attempt.
    """
    oldest = f"{(posting.attempted_at - _BEFORE).timestamp():.6f}"
    cursor = ""
    for _ in range(_MOST_PAGES):
        if thread_ts is None:
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
                ts=thread_ts,
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
