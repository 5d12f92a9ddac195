"""One listener for each modal: the reason of a rejection, and the full view that is approved in."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from slack_bolt.async_app import AsyncAck

from bot import replies
from bot.home_delivery import HomeDelivery
from bot.ingress.handler import REQUEST_HASH
from bot.listeners.deciding import Deciding
from bot.listeners.form_answers import keep_open, problem_of
from bot.listeners.payload import ViewSubmission
from bot.replaced import outdated_view
from bot.view_origin import ViewOrigin
from executor.domain.approval import Vote
from executor.domain.errors import DatabaseUnavailable
from executor.domain.policy import Permission
from executor.domain.transition import Reason, Refused
from executor.engine.click import ClickResult, NotConfirmed

_log = logging.getLogger(__name__)

REASON_BLOCK = "reason"
REASON_INPUT = "text"
STOP_BLOCK = "stop"
STOP_INPUT = "choice"
STOP_RUN = "stop_run"


class Views:
    """Answers submitted modals; what began on somebody's Home tab is shown there afterwards."""

    def __init__(self, deciding: Deciding, homes: HomeDelivery) -> None:
        self._deciding = deciding
        self._homes = homes

    async def reject_reason(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Record a rejection with its reason; what was typed is not lost when it cannot be."""
        submitted = read_submission(body)
        origin = self._origin(submitted)
        if submitted is None or origin is None:
            await keep_open(ack, REASON_BLOCK, replies.outdated_card())
            return
        try:
            result = await self._decide(submitted, origin, context, Vote.REJECT)
        except DatabaseUnavailable:
            await keep_open(ack, REASON_BLOCK, replies.database_away())
            return
        problem = problem_of(result) if _keeps_open(result) else None
        if problem is not None:
            stops = isinstance(result, Refused) and _may_not_stop(result)
            await keep_open(ack, STOP_BLOCK if stops else REASON_BLOCK, problem)
        elif origin.modal is not None:
            # The full view lies under it, and is decided.
            await ack(response_action="clear")
        else:
            await ack()

    async def full_view(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Record an approval of what the full view shows."""
        submitted = read_submission(body)
        origin = self._origin(submitted)
        if submitted is None or origin is None:
            # It has no input under which a sentence could stand.
            await ack(response_action="update", view=dict(outdated_view()))
        else:
            await self._decide(submitted, origin, context, Vote.APPROVE)
            await ack()

    def _origin(self, submitted: ViewSubmission | None) -> ViewOrigin | None:
        if submitted is None or not submitted.is_for(self._deciding.tenant):
            return None
        return ViewOrigin.decode(submitted.view.private_metadata)

    async def _decide(
        self,
        submitted: ViewSubmission,
        origin: ViewOrigin,
        context: Mapping[str, Any],
        vote: Vote,
    ) -> ClickResult:
        rejects = vote is Vote.REJECT
        result = await self._deciding.decide(
            self._deciding.click(
                origin.value,
                principal=submitted.principal(self._deciding.tenant),
                user_id=submitted.user.id,
                vote=vote,
                note=submitted.typed(REASON_BLOCK, REASON_INPUT) if rejects else "",
                channel=origin.channel,
                message_ts=origin.message_ts,
                request_hash=context[REQUEST_HASH],
                stops_run=rejects and STOP_RUN in submitted.chosen(STOP_BLOCK, STOP_INPUT),
                modal=origin.modal,
            )
        )
        if origin.at_home:
            self._homes.refresh(submitted.user.id)
        return result


def _keeps_open(result: ClickResult) -> bool:
    """Say whether the same rejection could still count; every other refusal is a notice."""
    if isinstance(result, Refused):
        return result.reason is Reason.IDENTITY_UNKNOWN or _may_not_stop(result)
    return isinstance(result, NotConfirmed)


def _may_not_stop(refused: Refused) -> bool:
    return refused.detail.get("missing") == Permission.CANCEL.value


def read_submission(body: dict[str, Any]) -> ViewSubmission | None:
    """Read a submitted modal; ``None``, and a line in the log, where it is none."""
    try:
        return ViewSubmission.model_validate(body)
    except ValidationError:
        _log.warning("a submitted view could not be read")
        return None
