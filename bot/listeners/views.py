"""One listener for each modal: the reason of a rejection, and the full view that is approved in."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from slack_bolt.async_app import AsyncAck

from bot import replies
from bot.ingress.handler import REQUEST_HASH
from bot.listeners.deciding import Deciding
from bot.listeners.payload import ViewSubmission
from bot.view_origin import ViewOrigin
from executor.domain.approval import Vote
from executor.domain.errors import DatabaseUnavailable
from executor.domain.transition import Reason, Refused
from executor.engine.click import ClickResult, NotConfirmed

_log = logging.getLogger(__name__)

REASON_BLOCK = "reason"
REASON_INPUT = "text"


class Views:
    """Answers submitted modals."""

    def __init__(self, deciding: Deciding) -> None:
        self._deciding = deciding

    async def reject_reason(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Record a rejection with its reason; what was typed is not lost when it cannot be."""
        submitted = read_submission(body)
        if submitted is None:
            await _problem(ack, replies.outdated_card())
            return
        note = submitted.typed(REASON_BLOCK, REASON_INPUT)
        try:
            result = await self._decide(submitted, context, Vote.REJECT, note)
        except DatabaseUnavailable:
            await _problem(ack, replies.database_away())
            return
        if result is None:
            await _problem(ack, replies.outdated_card())
        elif isinstance(result, Refused) and result.reason is Reason.IDENTITY_UNKNOWN:
            await _problem(ack, replies.identity_unverified())
        elif isinstance(result, NotConfirmed):
            await _problem(ack, replies.not_confirmed())
        else:
            await ack()

    async def full_view(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Record an approval of what the full view shows."""
        submitted = read_submission(body)
        if submitted is not None:
            await self._decide(submitted, context, Vote.APPROVE, "")
        await ack()

    async def _decide(
        self, submitted: ViewSubmission, context: Mapping[str, Any], vote: Vote, note: str
    ) -> ClickResult | None:
        origin = ViewOrigin.decode(submitted.view.private_metadata)
        if origin is None or not submitted.is_for(self._deciding.tenant):
            return None
        return await self._deciding.decide(
            self._deciding.click(
                origin.value,
                principal=submitted.principal(self._deciding.tenant),
                user_id=submitted.user.id,
                vote=vote,
                note=note,
                channel=origin.channel,
                message_ts=origin.message_ts,
                request_hash=context[REQUEST_HASH],
            )
        )


async def _problem(ack: AsyncAck, text: str) -> None:
    """Keep the modal open with a sentence under its input."""
    await ack(response_action="errors", errors={REASON_BLOCK: text})


def read_submission(body: dict[str, Any]) -> ViewSubmission | None:
    """Read a submitted modal; ``None``, and a line in the log, where it is none."""
    try:
        return ViewSubmission.model_validate(body)
    except ValidationError:
        _log.warning("a submitted view could not be read")
        return None
