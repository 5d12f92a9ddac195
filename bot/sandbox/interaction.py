"""What people do in the workspace: click, type commands, fill modals, mention the bot.

A person can only press what the workspace stored. Slack repeats no interaction; events it does.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from bot.sandbox import answers, payloads
from bot.sandbox.delivery import (
    FORM,
    JSON,
    Delivery,
    Kind,
    NotConnected,
    SignedRequest,
    send,
    signed,
)
from bot.sandbox.model import Ephemeral, Json, Message, OpenView, User
from bot.sandbox.payloads import NothingToClick
from bot.sandbox.socket_mode import payload_of

if TYPE_CHECKING:
    from bot.sandbox.workspace import Workspace

EVENTS_PATH = "/slack/events"


@dataclass(frozen=True)
class Sending:
    """How a request is sent, if not as Slack would.

    `skew_seconds` moves the timestamp, `secret` signs with another secret, `copies` sends the same
    signed request that many times at once, `to` picks another of the bot's processes by its URL.
    """

    skew_seconds: float = 0.0
    secret: str | None = None
    copies: int = 1
    to: str | None = None


HONEST = Sending()


class Person:
    """The hands of one user."""

    def __init__(self, workspace: Workspace, user: User) -> None:
        self.workspace = workspace
        self.user = user

    # What the person sees

    def ephemerals(self, channel: str | None = None) -> list[Ephemeral]:
        """Return what was whispered to this person, oldest first."""
        whispered = self.workspace.ephemerals.get(self.user.id, [])
        return [e for e in whispered if channel in (None, e.channel)]

    def view(self) -> OpenView | None:
        """Return the modal on top of this person's screen."""
        return self.workspace.view_of(self.user.id)

    def home(self) -> OpenView | None:
        """Return the Home tab that the bot has published for this person."""
        return self.workspace.homes.get(self.user.id)

    # What the person does

    async def click(
        self,
        channel: str,
        ts: str,
        action_id: str,
        *,
        block_id: str | None = None,
        revision: int | None = None,
        option: str | None = None,
        sending: Sending = HONEST,
    ) -> Delivery:
        """Press an element of a message.

        `revision` (from 0) presses what a client that missed the later updates still shows;
        `option` is the value to choose where there is a choice. Raises NothingToClick.
        """
        workspace = self.workspace
        self._must_be_in(channel)
        message = workspace.message(channel, ts)
        if message is not None:
            index = len(message.revisions) - 1 if revision is None else revision
            blocks = message.revisions[index].blocks
            action = payloads.find_element(blocks, action_id, block_id, option)
            payload = payloads.click_on_message(workspace, self.user, message, index, action)
        else:
            seen = next((e for e in self.ephemerals(channel) if e.ts == ts), None)
            if seen is None:
                raise NothingToClick(f"no message {ts} in {channel}")
            action = payloads.find_element(seen.blocks, action_id, block_id, option)
            payload = payloads.click_on_ephemeral(workspace, self.user, seen, action)
        return await self._interact("block_actions", payload, sending)

    async def click_in_view(
        self,
        view_id: str,
        action_id: str,
        *,
        block_id: str | None = None,
        option: str | None = None,
        sending: Sending = HONEST,
    ) -> Delivery:
        """Press an element of an open modal or of the Home tab. Raises NothingToClick."""
        opened = self._own_view(view_id)
        action = payloads.find_element(opened.view["blocks"], action_id, block_id, option)
        payload = payloads.click_in_view(self.workspace, self.user, opened, action)
        return await self._interact("block_actions", payload, sending)

    async def slash(
        self, channel: str, command: str, text: str = "", *, sending: Sending = HONEST
    ) -> Delivery:
        """Type a slash command."""
        self._must_be_in(channel)
        fields = payloads.slash_fields(self.workspace, self.user, channel, command, text)
        return await self._deliver(
            "slash", urlencode(fields).encode(), sending, context={"channel": channel}
        )

    async def submit_view(
        self, view_id: str, values: Json | None = None, *, sending: Sending = HONEST
    ) -> Delivery:
        """Press a modal's submit button.

        `values` is {block_id: {action_id: value}}: a string, or the state object itself for
        elements other than text inputs. Raises NothingToClick for inputs that are not there.
        """
        opened = self._own_view(view_id)
        if opened.kind == "home" or "submit" not in opened.view:
            raise NothingToClick(f"view {view_id} has no submit button")
        state = filled(opened, values or {})
        payload = payloads.view_submission(self.workspace, self.user, opened, state)
        return await self._interact(
            "view_submission", payload, sending, context={"view_id": opened.id}
        )

    async def close_view(self, view_id: str, *, sending: Sending = HONEST) -> Delivery | None:
        """Dismiss a modal. The bot hears of it only if the view asked to be told."""
        opened = self._own_view(view_id)
        whole = bool(opened.view.get("clear_on_close"))
        payload = payloads.view_closed(self.workspace, self.user, opened, whole)
        self.workspace.close_view(opened, whole_stack=whole)
        if not opened.view.get("notify_on_close"):
            return None
        return await self._interact("view_closed", payload, sending)

    async def say(self, channel: str, text: str, *, thread_ts: str | None = None) -> Message:
        """Write a message that does not concern the bot."""
        self._must_be_in(channel)
        return self.workspace.post(channel, self.user.id, text, thread_ts=thread_ts)

    async def mention(
        self,
        channel: str,
        text: str,
        *,
        thread_ts: str | None = None,
        retries: bool = True,
        sending: Sending = HONEST,
    ) -> Delivery:
        """Write a message that names the bot; the event follows.

        With `retries` a failed delivery is repeated in the background on the workspace's clock.
        """
        name = f"<@{self.workspace.app.user_id}>"
        message = await self.say(
            channel, text if name in text else f"{name} {text}", thread_ts=thread_ts
        )
        envelope = payloads.app_mention(self.workspace, message, self.user)
        return await self._deliver_event(envelope, sending, retries=retries)

    async def open_home(self) -> Delivery:
        """Look at the bot's Home tab; the bot is told, with what it showed there last."""
        return await self.cause(payloads.app_home_opened(self.workspace, self.user))

    async def cause(self, event: Json) -> Delivery:
        """Let the bot be told of an event that this person has caused."""
        body = json.dumps(payloads.envelope(self.workspace, event)).encode()
        return await self._deliver("event", body, HONEST)

    async def _deliver_event(self, envelope: Json, sending: Sending, *, retries: bool) -> Delivery:
        first = await self._deliver("event", json.dumps(envelope).encode(), sending)
        if retries:
            self.workspace.event_retries.follow(
                first, lambda number, reason: self.redeliver(first, number, reason)
            )
        return first

    async def redeliver(
        self, first: Delivery, number: int = 1, reason: str = "http_timeout"
    ) -> Delivery:
        """Deliver an event again as Slack does: same body, new signature, retry headers."""
        headers = {"x-slack-retry-num": str(number), "x-slack-retry-reason": reason}
        return await self._deliver("event", first.request.body, HONEST, extra=headers)

    async def replay(self, earlier: Delivery, *, to: str | None = None) -> Delivery:
        """Send the bytes, headers and signature of an earlier request once more."""
        return await self._send(earlier.request, to)

    # How it gets to the bot

    def _must_be_in(self, channel: str) -> None:
        place = self.workspace.channels.get(channel)
        if place is None or self.user.id not in place.members:
            raise NothingToClick(f"{self.user.id} is not in {channel}")

    def _own_view(self, view_id: str) -> OpenView:
        opened = self.workspace.view(view_id)
        if opened is None or opened.user != self.user.id:
            raise NothingToClick(f"{self.user.id} has no view {view_id} open")
        return opened

    async def _interact(
        self, kind: Kind, payload: Json, sending: Sending, context: Json | None = None
    ) -> Delivery:
        body = urlencode({"payload": json.dumps(payload)}).encode()
        return await self._deliver(kind, body, sending, context=context)

    async def _deliver(
        self,
        kind: Kind,
        body: bytes,
        sending: Sending,
        *,
        extra: dict[str, str] | None = None,
        context: Json | None = None,
    ) -> Delivery:
        workspace = self.workspace
        request = signed(
            kind,
            self.user.id,
            body,
            secret=workspace.signing_secret if sending.secret is None else sending.secret,
            timestamp=workspace.now() + sending.skew_seconds,
            content_type=JSON if kind == "event" else FORM,
            extra=extra,
            context=context,
        )
        first, *others = await asyncio.gather(
            *(self._send(request, sending.to) for _ in range(sending.copies))
        )
        first.copies = list(others)
        return first

    async def _send(self, request: SignedRequest, to: str | None) -> Delivery:
        workspace = self.workspace
        bot_url = workspace.bot_url if to is None else to.rstrip("/")
        if bot_url is None and not workspace.socket_mode:
            raise NotConnected("no bot is connected: call workspace.connect(bot_url) first")
        number = workspace.next_delivery()
        workspace.record.add(
            "delivery", request.kind, workspace.now(), described(request) | {"delivery": number}
        )
        if bot_url is None:
            delivery = await workspace.sockets.deliver(request, number, workspace.answer_seconds)
        else:
            url = bot_url + EVENTS_PATH
            delivery = await send(url, request, number, workspace.answer_seconds)
        answers.apply(workspace, delivery)
        workspace.record.add(
            "ack",
            request.kind,
            workspace.now(),
            {
                "delivery": number,
                "status": delivery.status,
                "seconds": delivery.seconds,
                "sees": delivery.sees.value,
                "said": delivery.said,
            },
        )
        return delivery


def filled(opened: OpenView, values: Json) -> Json:
    """Return the state of a modal's inputs after `values` were typed into them."""
    inputs = {b["block_id"]: b["element"] for b in opened.view["blocks"] if b["type"] == "input"}
    unknown = set(values) - set(inputs)
    if unknown:
        raise NothingToClick(f"no input block {sorted(unknown)} in {opened.id}")
    state: Json = {}
    for block_id, element in inputs.items():
        action_id = element["action_id"]
        given = values.get(block_id, {})
        if set(given) - {action_id}:
            raise NothingToClick(f"no input {sorted(given)} in block {block_id!r}")
        typed = given.get(action_id, element.get("initial_value"))
        filled_in = typed if isinstance(typed, dict) else {"value": typed}
        state[block_id] = {action_id: {"type": element["type"], **filled_in}}
    return state


def described(request: SignedRequest) -> Json:
    """Return a request for the record, without its secrets."""
    payload = payload_of(request)
    for secret in ("token", "response_url"):
        payload.pop(secret, None)
    retry = {k: v for k, v in request.headers.items() if k.startswith("x-slack-retry")}
    return {"user": request.user, "payload": payload, "retry": retry}
