"""How a submitted form is answered: it closes where it was taken, else it stays and tells why.

What was typed is not lost: a form that stays open keeps it.
"""

from __future__ import annotations

from slack_bolt.async_app import AsyncAck

from bot import replies
from bot.notice_text import refusal_text
from executor.domain.transition import Reason, Refused
from executor.engine.click import NotConfirmed


async def keep_open(ack: AsyncAck, block: str, text: str) -> None:
    """Keep the form open with a sentence under one of its inputs."""
    await ack(response_action="errors", errors={block: text})


def problem_of(result: object) -> str | None:
    """Say why a form's saying was not taken, or ``None`` where it was, or changes nothing."""
    match result:
        case Refused(reason=Reason.IDENTITY_UNKNOWN):
            return replies.identity_unverified()
        case Refused():
            return refusal_text(result.reason, result.detail)
        case NotConfirmed():
            return replies.not_confirmed()
        case _:
            return None
