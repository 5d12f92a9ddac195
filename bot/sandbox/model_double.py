"""Language models on this machine: Anthropic's Messages and OpenAI's Chat Completions.

What it replies comes from a script, or from the scripted model, so that the whole job runs through
either wire. It counts what it would have charged, whether or not the caller learnt of it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from aiohttp import web

from bot.sandbox import anthropic_wire, openai_wire
from bot.sandbox.anthropic_wire import Unacceptable
from bot.sandbox.fault_plan import FaultPlan
from bot.sandbox.model import Json
from bot.sandbox.model_faults import ModelFault, PlannedFault
from bot.sandbox.model_reading import request_of
from bot.sandbox.model_reply import Billed, SaidReply, bill, said
from bot.sandbox.provider_listener import Listener
from executor.adapters.models.conversation import Piece
from executor.adapters.models.scripted import ScriptedModel
from executor.engine.ports import ToolSpec

_MAX_BODY_BYTES = 32 * 1024 * 1024
_PROXY_PAGE = "<html><head><title>{0}</title></head><body>{0} - proxy</body></html>"
_MOST_ENDLESS_CHUNKS = 100_000


class _Wire(Protocol):
    """How one provider spells things."""

    def error(self, status: int, code: str, message: str) -> Json:
        """Spell an error."""

    def is_let_in(self, headers: Mapping[str, str], key: str) -> bool:
        """Tell whether the key is right."""

    def read(self, body: Json) -> tuple[str, list[ToolSpec], list[Piece], int]:
        """Read a request; raises ``Unacceptable``."""

    def body(self, reply: SaidReply, billed: Billed, model: str, *, usage: bool) -> Json:
        """Spell a whole reply."""

    def events(self, reply: SaidReply, billed: Billed, model: str, *, usage: bool) -> list[str]:
        """Spell a reply as server-sent events."""


_WIRES: dict[str, tuple[_Wire, int]] = {
    anthropic_wire.PATH: (anthropic_wire, 529),
    openai_wire.PATH: (openai_wire, 503),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that came in, as it was sent."""

    path: str
    body: Json


class ModelDouble:
    """Serve both APIs on a free port of 127.0.0.1 while the ``async with`` lasts."""

    def __init__(
        self, script: Iterable[SaidReply] = (), *, api_key: str = "sk-sandbox", port: int = 0
    ) -> None:
        """Reply from ``script`` as long as it lasts, then as the scripted model does."""
        self.faults = FaultPlan[PlannedFault]()
        self.asked: list[Asked] = []
        self.billed: list[Billed] = []
        self.refused: list[str] = []
        self.script = deque(script)
        self._api_key = api_key
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._listener = Listener(app, port)

    @property
    def url(self) -> str:
        """The value for ANTHROPIC_BASE_URL; with ``/v1``, for OPENAI_BASE_URL."""
        return self._listener.url

    async def __aenter__(self) -> ModelDouble:
        await self._listener.listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.faults.release()
        await self._listener.stop()

    def fail(self, fault: PlannedFault | ModelFault, *, call: int | None = None) -> None:
        """Fail at this call, counted from 1, or at every call."""
        planned = fault if isinstance(fault, PlannedFault) else PlannedFault(fault)
        self.faults.plan(planned, call=call)

    def refuse(self) -> None:
        """Refuse connections from now on."""
        self._listener.refuse()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        planned = self.faults.count()
        raw = await request.read()
        if request.path not in _WIRES:
            return web.json_response({"error": "not found"}, status=404)
        wire, overloaded = _WIRES[request.path]
        body: Json = json.loads(raw)
        self.asked.append(Asked(request.path, body))
        turned_away = self._turned_away(request, wire, overloaded, planned)
        if turned_away is not None:
            return turned_away
        try:
            instructions, tools, conversation, limit = wire.read(body)
        except Unacceptable as refusal:
            self.refused.append(str(refusal))
            told = wire.error(400, "invalid_request_error", str(refusal))
            return web.json_response(told, status=400)
        if self.script:
            reply = self.script.popleft()
        else:
            asked = request_of(instructions, tools, conversation, limit)
            reply = said(await ScriptedModel().reply(asked))
        billed = bill(reply, raw)
        # From here on it would be charged, whatever the caller gets to see.
        self.billed.append(billed)
        return await self._answer(request, wire, body, reply, billed, planned)

    def _turned_away(
        self, request: web.Request, wire: _Wire, overloaded: int, planned: PlannedFault | None
    ) -> web.Response | None:
        """Answer before any work, as far as that is told."""
        if not wire.is_let_in(request.headers, self._api_key):
            told = wire.error(401, "authentication_error", "invalid x-api-key sk-sandbox")
            return web.json_response(told, status=401)
        if planned is None:
            return None
        retry = {} if planned.retry_after is None else {"Retry-After": str(planned.retry_after)}
        match planned.fault:
            case ModelFault.RATE_LIMIT:
                told = wire.error(429, "rate_limit_error", "slow down")
                return web.json_response(told, status=429, headers=retry)
            case ModelFault.OVERLOADED:
                told = wire.error(overloaded, "overloaded_error", "Overloaded")
                return web.json_response(told, status=overloaded, headers=retry)
            case ModelFault.ERROR if planned.status < 500:
                told = wire.error(planned.status, planned.code, "refused")
                return web.json_response(told, status=planned.status, headers=retry)
            case ModelFault.REDIRECT:
                return web.Response(status=307, headers={"Location": request.path})
            case _:
                return None

    async def _answer(
        self,
        request: web.Request,
        wire: _Wire,
        body: Json,
        reply: SaidReply,
        billed: Billed,
        planned: PlannedFault | None,
    ) -> web.StreamResponse:
        fault = None if planned is None else planned.fault
        if planned is not None:
            if fault is ModelFault.HANG:
                await self.faults.hang()
            if fault is ModelFault.DROP:
                _abort(request)
                return web.Response()
            if fault is ModelFault.ERROR:
                told = wire.error(planned.status, planned.code, "something went wrong")
                return web.json_response(told, status=planned.status)
            if fault is ModelFault.PROXY_PAGE:
                page = _PROXY_PAGE.format(planned.status)
                return web.Response(text=page, status=planned.status, content_type="text/html")
            if fault is ModelFault.NOT_JSON:
                return web.Response(text="\n\n{", content_type="application/json")
        usage, model = fault is not ModelFault.NO_USAGE, body["model"]
        if body.get("stream"):
            parts = wire.events(reply, billed, model, usage=usage)
            if planned is not None and fault is ModelFault.ERROR_IN_STREAM:
                told = wire.error(200, "overloaded_error", "Overloaded")
                parts[planned.after :] = [f"event: error\ndata: {json.dumps(told)}\n\n"]
            return await self._put(request, "text/event-stream", parts, planned)
        whole = json.dumps(wire.body(reply, billed, model, usage=usage))
        half = len(whole) // 2
        return await self._put(request, "application/json", [whole[:half], whole[half:]], planned)

    async def _put(
        self, request: web.Request, kind: str, parts: list[str], planned: PlannedFault | None
    ) -> web.StreamResponse:
        """Put parts of an answer on the wire, or as many as the fault lets through."""
        answer = web.StreamResponse(headers={"Content-Type": kind, "request-id": "req_1"})
        await answer.prepare(request)
        # Who has asked may be gone meanwhile.
        with suppress(ConnectionError):
            await self._write(request, answer, parts, planned)
        return answer

    async def _write(
        self,
        request: web.Request,
        answer: web.StreamResponse,
        parts: list[str],
        planned: PlannedFault | None,
    ) -> None:
        # The headers leave now, and not with the first part.
        await answer.write(b"")
        fault = None if planned is None else planned.fault
        if fault is ModelFault.HANG_AFTER_HEADERS:
            await self.faults.hang()
        kept = len(parts)
        if planned is not None and fault in (ModelFault.BREAK, ModelFault.END_EARLY):
            kept = planned.after if answer.content_type == "text/event-stream" else 1
        for number, part in enumerate(parts[:kept]):
            if planned and fault is ModelFault.HANG_IN_BODY and number == (planned.after or 1):
                await self.faults.hang()
            await answer.write(part.encode())
        if fault is ModelFault.BREAK:
            _abort(request)
            return
        if fault is ModelFault.ENDLESS:
            await _endless(answer)
        await answer.write_eof()


async def _endless(answer: web.StreamResponse) -> None:
    for _ in range(_MOST_ENDLESS_CHUNKS):
        await answer.write(b": " + b"x" * 8_000 + b"\n\n")


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
