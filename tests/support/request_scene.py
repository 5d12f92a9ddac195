"""A bot with cards that nobody touches, and requests to it that Slack would not send.

    async with scene_of(database_url) as scene:
        before = await scene.record()
        answer = await scene.send(scene.click(secret="guessed"))
        assert await scene.record() == before

Two operations of the tenant wait for a decision, and one of another tenant in the same database.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

import aiohttp

from bot.button_value import ButtonValue
from bot.notice_text import notice_text
from bot.sandbox import payloads
from bot.sandbox.delivery import FORM, JSON
from bot.sandbox.model import Json, Message
from bot.sandbox.seed import BOT_TOKEN, SIGNING_SECRET
from bot.sandbox.signing import signature_headers
from tests.support.bot_harness import APPROVALS, REVIEWER, Harness
from tests.support.office import Office

EVENTS = "/slack/events"
CANARY = "canary-7431"
"""Stands in every click, as something that somebody wrote would."""

SECRETS = (SIGNING_SECRET, BOT_TOKEN)
_LEFT_OUT = ("Content-Type", "User-Agent")


@dataclass(frozen=True)
class Sent:
    """One request as it goes out; ``pieces``: its body comes in chunks and without a length."""

    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
    path: str = EVENTS
    pieces: int | None = None


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    text: str


@dataclass
class Scene:
    """The bot and what it has shown; ``foreign`` is what a button of the other tenant carries."""

    h: Harness
    card: Message
    other: Message
    foreign: ButtonValue

    @property
    def value(self) -> ButtonValue:
        """What the Approve of the first card carries."""
        return _value_on(self.card)

    @property
    def other_value(self) -> ButtonValue:
        """What the Approve of the second card carries."""
        return _value_on(self.other)

    @property
    def port(self) -> int:
        """Where the bot listens."""
        return int(self.h.bots[0].url.rpartition(":")[2])

    def paths(self) -> list[str]:
        """List what the bot answers at."""
        router = self.h.bots[0].bot.web_application().router
        return sorted({resource.canonical for resource in router.resources()})

    # Requests

    def payload(self, *, value: str | None = None, action: str = "approve", **changes: Any) -> Json:
        """What Slack sends when the reviewer presses Approve, with ``changes`` to it."""
        workspace = self.h.workspace
        pressed = payloads.find_element(self.card.blocks, "approve", None, None)
        pressed |= {"action_id": action} | ({} if value is None else {"value": value})
        person, newest = workspace.users[REVIEWER], len(self.card.revisions) - 1
        whole = payloads.click_on_message(workspace, person, self.card, newest, pressed)
        whole["message"]["text"] = CANARY
        return {**copy.deepcopy(whole), **changes}

    def click(self, *, how: Mapping[str, Any] | None = None, **given: Any) -> Sent:
        """Sign a press of Approve; ``how`` changes its payload, all else the way it is sent."""
        return self.form({"payload": json.dumps(self.payload(**(how or {})))}, **given)

    def submission(self, callback: str, metadata: str) -> Sent:
        """Sign the submission of a modal that carries ``metadata`` back."""
        common = self.payload()
        for name in ("container", "message", "actions", "channel", "response_url"):
            del common[name]
        view = {
            "type": "modal",
            "callback_id": callback,
            "private_metadata": metadata,
            "state": {"values": {"reason": {"text": {"value": CANARY}}}},
        }
        return self.form(
            {"payload": json.dumps({**common, "type": "view_submission", "view": view})}
        )

    def command(self, text: str, **changes: str) -> Sent:
        """Sign a slash command of the reviewer."""
        workspace = self.h.workspace
        fields = payloads.slash_fields(
            workspace, workspace.users[REVIEWER], APPROVALS, "/signoff", text
        )
        return self.form({**fields, **changes})

    def form(self, fields: Mapping[str, str], **given: Any) -> Sent:
        """Sign a form."""
        return self.signed(urlencode(fields).encode(), **given)

    def signed(
        self,
        body: bytes,
        *,
        secret: str = SIGNING_SECRET,
        skew: float = 0,
        content_type: str | None = FORM,
        headers: Mapping[str, str | None] | None = None,
        pieces: int | None = None,
        signs: Callable[[bytes], bytes] = lambda body: body,
        sends: Callable[[bytes], bytes] = lambda body: body,
    ) -> Sent:
        """Sign bytes, ``skew`` seconds from now; ``signs`` and ``sends`` change them for one of
        the two only, and a header of ``None`` is left out.
        """
        proof = signature_headers(secret, int(time.time() + skew), signs(body))
        wanted = {"Content-Type": content_type, **proof, **(headers or {})}
        named = {name: value for name, value in wanted.items() if value is not None}
        return Sent(sends(body), named, pieces=pieces)

    def event(self, body: str, **given: Any) -> Sent:
        """Sign an event."""
        return self.signed(body.encode(), content_type=JSON, **given)

    # What comes of them

    async def send(self, sent: Sent) -> Answer:
        """Send a request, byte for byte as it is."""
        url = self.h.bots[0].url + sent.path
        data = BytesIO(sent.body) if sent.pieces is None else _in_pieces(sent.body, sent.pieces)
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(
                sent.method, url, data=data, headers=sent.headers, skip_auto_headers=_LEFT_OUT
            ) as response,
        ):
            return Answer(response.status, await response.text())

    async def record(self) -> list[Any]:
        """Read everything that a request could change of the work, refusals excepted."""
        return [
            *await self.h.rows("SELECT tenant_id, number, status, seq FROM operations ORDER BY 2"),
            *await self.h.rows("SELECT tenant_id, number, status, seq FROM runs ORDER BY 2"),
            *await self.h.rows("SELECT count(*), max(hash) FROM journal WHERE machine IS NOT NULL"),
            *await self.h.rows("SELECT count(*) FROM journal WHERE event = 'voted'"),
            *await self.h.rows("SELECT count(*) FROM decisions"),
            *await self.h.rows("SELECT count(*) FROM inbox"),
        ]

    async def refusals(self) -> list[str]:
        """List why decisions were refused, as the journal has it."""
        return [str(note["reason"]) for note in await self.h.notes("decision_refused")]

    async def until_told(self, words: str, *, but_for: Sequence[str]) -> None:
        """Wait until the reviewer is told something with these words, beside what was told."""
        before = sum(words in text for text in but_for)

        async def count() -> int:
            return sum(words in text for text in await self.told())

        await self.h.until(count, lambda found: found == before + 1)

    async def told(self) -> list[str]:
        """List what the reviewer was told privately, or will be when a bot sends what is queued."""
        queued = await self.h.rows(
            "SELECT answer FROM notices WHERE user_id = :user ORDER BY id", user=REVIEWER
        )
        whispered = [e.text for e in self.h.person(REVIEWER).ephemerals()]
        return [*whispered, *(notice_text(row.answer) for row in queued)]


@asynccontextmanager
async def scene_of(database_url: str) -> AsyncIterator[Scene]:
    """Let two cards be shown, and then let nothing happen but what is asked for."""
    async with Harness(database_url) as h:
        card, other = await _card_for(h, "4101"), await _card_for(h, "4102")
        await h.workers[0].stop()
        await h.bots[0].stop_loops()
        yield Scene(h, card, other, await _of_another_tenant(h))


async def _card_for(h: Harness, ticket: str) -> Message:
    await h.start_run(f"close {ticket}")
    return await h.settled_card(
        predicate=lambda m: ticket in str(m.blocks[0]) and "approve" in str(m.blocks)
    )


async def _of_another_tenant(h: Harness) -> ButtonValue:
    office = await Office.open(h.database)
    click = await office.click_for(await office.proposed())
    return ButtonValue(
        click.approval_id, click.operation_id, click.content_revision, click.digest, click.nonce
    )


def _value_on(card: Message) -> ButtonValue:
    value = ButtonValue.decode(payloads.find_element(card.blocks, "approve", None, None)["value"])
    assert value is not None
    return value


async def _in_pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]
