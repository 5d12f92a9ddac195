"""The hands of another app's bot in the workspace: it posts messages that name our bot.

What Slack makes of a text that an app posts stands in the event and in history: addresses and web
addresses become links. The event names the bot, its app and its user; it carries the message's
metadata only where a test says so, for Slack's reference of app_mention names none (2026).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from bot.sandbox import payloads
from bot.sandbox.delivery import Delivery
from bot.sandbox.echo import encode_text
from bot.sandbox.interaction import HONEST, Person, Sending
from bot.sandbox.model import Installation, Json, Message, User

if TYPE_CHECKING:
    from bot.sandbox.workspace import Workspace

REQUEST_EVENT = "signoff_request"
_ADDRESS = re.compile(r"(?<![\w.+|:/-])([\w.+-]+@[\w-]+(?:\.[\w-]+)+)")
_WEB = re.compile(r"(?<![<|])(https?://[^\s<>|\"`]+)")


class Agent(Person):
    """The hands of one bot, which ``app`` stands for."""

    def __init__(self, workspace: Workspace, user: User, app: Installation) -> None:
        super().__init__(workspace, user)
        self.app = app

    async def mention(
        self,
        channel: str,
        text: str,
        *,
        thread_ts: str | None = None,
        retries: bool = True,
        sending: Sending = HONEST,
        metadata: Json | None = None,
        in_event: bool = False,
        as_subtype: bool = False,
    ) -> Delivery:
        """Post a message that names the bot; the event follows.

        With ``in_event`` the event carries the metadata; with ``as_subtype`` it is a ``message`` of
        the subtype that old bots' messages have.
        """
        message = self._post(channel, text, thread_ts, metadata)
        envelope = payloads.mention_by_bot(
            self.workspace, message, self.user, self.app, in_event=in_event, as_subtype=as_subtype
        )
        return await self._deliver_event(envelope, sending, retries=retries)

    async def ask(
        self, channel: str, request: Json, *, thread_ts: str | None = None, in_event: bool = False
    ) -> Delivery:
        """Ask in the metadata of a message."""
        metadata = {"event_type": REQUEST_EVENT, "event_payload": request}
        return await self.mention(
            channel, "see metadata", thread_ts=thread_ts, metadata=metadata, in_event=in_event
        )

    async def ask_in_text(self, channel: str, request: Json, *, fenced: bool = True) -> Delivery:
        """Ask in the text of a message."""
        written = encode_text(json.dumps(request, ensure_ascii=False))
        return await self.mention(channel, f"```{written}```" if fenced else written)

    def told(self, thread_ts: str, channel: str) -> list[Message]:
        """Return what others have said in a thread, oldest first."""
        return [
            m
            for m in self.workspace.visible(channel)
            if m.is_reply and m.thread_ts == thread_ts and m.user != self.user.id
        ]

    def _post(
        self, channel: str, text: str, thread_ts: str | None, metadata: Json | None
    ) -> Message:
        self._must_be_in(channel)
        name = f"<@{self.workspace.app.user_id}>"
        named = text if name in text else f"{name} {text}"
        return self.workspace.post(
            channel,
            self.user.id,
            linked(named),
            metadata=metadata,
            thread_ts=thread_ts,
            app=self.app,
        )


def linked(text: str) -> str:
    """Make the links that Slack makes of addresses in a text, in code as well."""
    return _WEB.sub(r"<\1>", _ADDRESS.sub(r"<mailto:\1|\1>", text))
