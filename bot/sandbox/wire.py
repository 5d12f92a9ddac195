"""How an answer leaves, or does not leave, under a planned fault.

`answer_under` decides whether and when the step runs; `send` what the caller gets to see of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiohttp import web

from bot.sandbox.faults import Fault, PlannedFault
from bot.sandbox.model import Json


@dataclass(frozen=True)
class Answer:
    """What goes on the wire."""

    body: Json
    status: int = 200
    retry_after: int | None = None


def rate_limited(seconds: int) -> Answer:
    return Answer({"ok": False, "error": "ratelimited"}, 429, seconds)


async def answer_under(planned: PlannedFault | None, run: Callable[[], Answer]) -> Answer:
    """Run the step once, twice or not at all, as the fault has it."""
    if planned is None:
        return run()
    match planned.fault:
        case Fault.NOT_DELIVERED:
            return Answer({"ok": False, "error": "not delivered"}, 0)
        case Fault.RATE_LIMITED:
            return rate_limited(max(1, round(planned.seconds)))
        case Fault.REFUSED:
            return Answer({"ok": False, "error": planned.error})
        case Fault.ERROR_500_BEFORE_COMMIT:
            return Answer({"ok": False, "error": "internal_error"}, 500)
        case Fault.INTERNAL_ERROR_BEFORE_COMMIT:
            return Answer({"ok": False, "error": "internal_error"})
        case Fault.HANGS_BEFORE_COMMIT:
            await planned.released.wait()
        case Fault.DELIVERED_TWICE:
            run()
        case _:
            pass
    answer = run()
    if planned.fault is Fault.ERROR_500_AFTER_COMMIT:
        return Answer({"ok": False, "error": "internal_error"}, 500)
    if planned.fault is Fault.FATAL_ERROR_AFTER_COMMIT:
        return Answer({"ok": False, "error": "fatal_error"})
    return answer


async def send(
    request: web.Request,
    answer: Answer,
    planned: PlannedFault | None,
    headers: Mapping[str, str] | None = None,
) -> web.StreamResponse:
    """Send the answer, or the part of it that the fault lets through."""
    fault = planned.fault if planned else None
    if fault in (Fault.NOT_DELIVERED, Fault.LOST_AFTER_COMMIT):
        if request.transport is not None:
            request.transport.abort()
        return web.Response()
    if planned is not None and fault is Fault.HANGS_AFTER_COMMIT:
        await planned.released.wait()
    if planned is not None and fault is Fault.SLOW:
        await asyncio.sleep(planned.seconds)
    sent = dict(headers or {})
    if answer.retry_after is not None:
        sent["Retry-After"] = str(answer.retry_after)
    if fault is Fault.TRUNCATED_BODY:
        return await _truncated(request, answer, sent)
    return web.json_response(answer.body, status=answer.status, headers=sent)


async def _truncated(
    request: web.Request, answer: Answer, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Promise the whole body, send half of it, and drop the connection."""
    body = json.dumps(answer.body).encode()
    response = web.StreamResponse(headers=headers)
    response.content_type = "application/json"
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
