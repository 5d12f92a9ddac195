"""How the sandbox's outside desks fail: one planned fault per request, no chance involved.

Requests are numbered from 1, those that change something and those that read counted apart. A fault
strikes once. A desk may also stop to answer anybody, from one moment to another.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from aiohttp import web

CHANGE, READ = "change", "read"
RETRY_AFTER_SECONDS = 37

Act: TypeAlias = "Callable[[], DeskAnswer]"
"""Does what a request asks for, at the moment it is called, and says what the desk answers."""


class DeskFault(StrEnum):
    """What happens to a request; "accepted" is the moment the desk has done what it asks."""

    REFUSED = "refused"  # a 4xx in the desk's own words; nothing is done
    STRANGER = "stranger"  # a 403 page of somebody on the way; nothing is done
    RESET_BEFORE = "reset_before"  # the connection is reset; nothing is done
    RESET_AFTER = "reset_after"  # accepted, then the connection is reset
    HANGS_BEFORE = "hangs_before"  # nothing until released, then the request goes on
    HANGS_AFTER = "hangs_after"  # accepted, no answer until released
    ERROR_BEFORE = "error_before"  # a 502 page; nothing is done
    ERROR_AFTER = "error_after"  # accepted, then a 500
    CUT_BODY = "cut_body"  # accepted, the answer breaks off after its head
    LIMITED = "limited"  # 429 with Retry-After; nothing is done
    LIMITED_BARE = "limited_bare"  # 429 without it; nothing is done
    COLLISION = "collision"  # a 409 although nobody changed anything; nothing is done
    LATE = "late"  # the connection is reset; the desk does it when `land` is called
    REPEATED = "repeated"  # somebody on the way sends it twice; the second answer comes through


@dataclass(frozen=True, slots=True)
class DeskAnswer:
    """What a desk answers: JSON, or a page when the body is text."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    def octets(self) -> bytes:
        """The body as it goes over the wire."""
        if isinstance(self.body, str):
            return self.body.encode()
        return json.dumps(self.body).encode()

    @property
    def content_type(self) -> str:
        """The body's media type."""
        kind = "text/html" if isinstance(self.body, str) else "application/json"
        return f"{kind}; charset=utf-8"


class DeskWords(Protocol):
    """How one desk words its refusals."""

    def refused(self) -> DeskAnswer: ...

    def limited(self, seconds: int | None) -> DeskAnswer: ...

    def collision(self) -> DeskAnswer: ...

    def broken(self) -> DeskAnswer: ...


@dataclass(eq=False)
class PlannedDeskFault:
    """One fault that waits for its request; ``struck`` is set when it came, ``over`` at its end.

    ``first`` is what somebody else does in that moment. Without a ``fault`` nothing goes wrong.
    """

    fault: DeskFault | None
    request: str
    number: int
    retry_after: int
    first: Callable[[], None] | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)
    struck: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)


class DeskFaults:
    """Plan faults, and do to each request what is planned for it."""

    def __init__(self, words: DeskWords) -> None:
        self._words = words
        self._planned: list[PlannedDeskFault] = []
        self._late: list[Act] = []
        self._is_away: Callable[[], Awaitable[bool]] | None = None
        self.counts: Counter[str] = Counter()

    def add(
        self,
        fault: DeskFault | None,
        number: int = 1,
        *,
        request: str = CHANGE,
        retry_after: int = RETRY_AFTER_SECONDS,
        first: Callable[[], None] | None = None,
    ) -> PlannedDeskFault:
        """Plan a fault for the request of that number, counted from now on."""
        at = self.counts[request] + number
        planned = PlannedDeskFault(fault, request, at, retry_after, first)
        self._planned.append(planned)
        return planned

    def clear(self) -> None:
        """Forget every fault that has not struck yet, and what would still land."""
        self._planned = [planned for planned in self._planned if planned.struck.is_set()]
        self._late.clear()

    def be_away(self, is_away: Callable[[], Awaitable[bool]] | None) -> None:
        """Reset each connection while ``is_away`` says so, asked each time; ``None``: never."""
        self._is_away = is_away

    def land(self) -> list[DeskAnswer]:
        """Let the desk do what reached it late; nobody hears its answers."""
        late, self._late = self._late, []
        return [act() for act in late]

    def release(self) -> None:
        """Let every hanging request go on."""
        for planned in self._planned:
            planned.released.set()

    async def serve(self, request: web.Request, kind: str, act: Act) -> web.StreamResponse:
        """Answer one request, under the fault that is planned for it if there is one."""
        if self._is_away is not None and await self._is_away():
            return _reset(request)
        self.counts[kind] += 1
        number = self.counts[kind]
        planned = next((p for p in self._planned if (p.request, p.number) == (kind, number)), None)
        if planned is None:
            return _send(act())
        planned.struck.set()
        if planned.first is not None:
            planned.first()
        try:
            return await self._under(planned, request, act)
        finally:
            planned.over.set()

    async def _under(
        self, planned: PlannedDeskFault, request: web.Request, act: Act
    ) -> web.StreamResponse:
        match planned.fault:
            case None:
                return _send(act())
            case DeskFault.REPEATED:
                act()
                return _send(act())
            case DeskFault.REFUSED | DeskFault.STRANGER | DeskFault.ERROR_BEFORE:
                return _send(self._unaccepted(planned.fault, planned.retry_after))
            case DeskFault.LIMITED | DeskFault.LIMITED_BARE | DeskFault.COLLISION:
                return _send(self._unaccepted(planned.fault, planned.retry_after))
            case DeskFault.RESET_BEFORE:
                return _reset(request)
            case DeskFault.LATE:
                self._late.append(act)
                return _reset(request)
            case DeskFault.HANGS_BEFORE:
                await planned.released.wait()
                return _send(act())
            case DeskFault.RESET_AFTER:
                act()
                return _reset(request)
            case DeskFault.HANGS_AFTER:
                answer = act()
                await planned.released.wait()
                return _send(answer)
            case DeskFault.ERROR_AFTER:
                act()
                return _send(self._words.broken())
            case DeskFault.CUT_BODY:
                return await _cut(request, act())

    def _unaccepted(self, fault: DeskFault, retry_after: int) -> DeskAnswer:
        answers = {
            DeskFault.REFUSED: self._words.refused(),
            DeskFault.STRANGER: DeskAnswer(403, "<html>Blocked by the network</html>"),
            DeskFault.ERROR_BEFORE: DeskAnswer(502, "<html>Bad gateway</html>"),
            DeskFault.LIMITED: self._words.limited(retry_after),
            DeskFault.LIMITED_BARE: self._words.limited(None),
            DeskFault.COLLISION: self._words.collision(),
        }
        return answers[fault]


def _send(answer: DeskAnswer) -> web.Response:
    headers = {"Content-Type": answer.content_type, **answer.headers}
    return web.Response(status=answer.status, body=answer.octets(), headers=headers)


def _reset(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _cut(request: web.Request, answer: DeskAnswer) -> web.StreamResponse:
    octets = answer.octets()
    response = web.StreamResponse(
        status=answer.status, headers={"Content-Type": answer.content_type, **answer.headers}
    )
    response.content_length = len(octets)
    await response.prepare(request)
    await response.write(octets[: len(octets) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
