"""Where the sandbox's mail providers fail: one plan by number of call, no chance involved.

A fault says what the caller gets to see and, by `after_accepting`, whether the mail was taken all
the same. What hangs goes on when it is released, whether or not the caller is still there: that is
how a mail comes to be accepted after its sender has given up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from aiohttp import web

from bot.sandbox.fault_plan import FaultPlan
from bot.sandbox.model import Json

PROXY_PAGE = "<html><head><title>{status}</title></head><body>{status} - proxy</body></html>"


class Fault(StrEnum):
    """What can go wrong with one call."""

    REFUSE = "refuse"
    """Nobody listens; it lasts until the double listens again."""
    HANG = "hang"
    DROP = "drop"
    """Hang up without an answer."""
    ERROR = "error"
    """Answer with an error in the provider's own shape, by default 500."""
    PROXY_PAGE = "proxy_page"
    """Answer with somebody else's HTML."""
    CUT_BODY = "cut_body"
    """Accept, answer 2xx, and hang up in the middle of the body."""
    DELIVER_TWICE = "deliver_twice"
    """Accept once and deliver twice, which is the provider's own repeat."""
    RATE_LIMIT = "rate_limit"


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One failure; `after_accepting` is for HANG, DROP, ERROR and PROXY_PAGE."""

    fault: Fault
    after_accepting: bool = False
    status: int = 500
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes on the wire; a `str` body is HTML."""

    status: int
    body: Json | str
    headers: Mapping[str, str] = field(default_factory=dict)


class ProviderFaults(FaultPlan[PlannedFault]):
    """The plan of one endpoint."""

    def plan(self, fault: PlannedFault, *, call: int | None = None) -> None:
        """Fail at this call, or at every call that has no fault of its own.

        What is planned to hang does so until the next release.
        """
        super().plan(fault, call=call)
        if fault.fault is Fault.HANG:
            self._released.clear()
            self._hanging.clear()

    def clear(self) -> None:
        """Forget every fault that has not happened yet."""
        self._planned.clear()

    def refuses_next(self) -> bool:
        """Tell whether the next call may not even connect."""
        fault = self._planned.get(self.calls + 1, self._planned.get(None))
        return fault is not None and fault.fault is Fault.REFUSE


async def answer_under(
    planned: PlannedFault | None,
    faults: ProviderFaults,
    accept: Callable[[int], Answer],
    error: Callable[[int], Answer],
) -> Answer | None:
    """Accept, or not, as the fault has it; `accept` takes the number of copies to deliver.

    `error` makes the provider's own error for a status. `None` means that nothing is answered.
    """
    if planned is None:
        return accept(1)
    if planned.fault is Fault.RATE_LIMIT:
        retry = {} if planned.retry_after is None else {"Retry-After": str(planned.retry_after)}
        return replace(error(429), headers=retry)
    if planned.fault is Fault.HANG and not planned.after_accepting:
        await faults.hang()
        return accept(1)
    instead = {
        Fault.DROP: None,
        Fault.ERROR: error(planned.status),
        Fault.PROXY_PAGE: Answer(planned.status, PROXY_PAGE.format(status=planned.status)),
    }
    if planned.fault in instead and not planned.after_accepting:
        return instead[planned.fault]
    answer = accept(2 if planned.fault is Fault.DELIVER_TWICE else 1)
    if planned.fault is Fault.HANG:
        await faults.hang()
    return instead.get(planned.fault, answer)


async def put_on_wire(
    request: web.Request, answer: Answer | None, planned: PlannedFault | None
) -> web.StreamResponse:
    """Send the answer, or as much of it as the fault lets through."""
    if answer is None:
        _abort(request)
        return web.Response()
    if isinstance(answer.body, str):
        return web.Response(text=answer.body, status=answer.status, content_type="text/html")
    whole = web.json_response(answer.body, status=answer.status, headers=answer.headers)
    if planned is None or planned.fault is not Fault.CUT_BODY:
        return whole
    body = whole.text or ""
    cut = web.StreamResponse(status=answer.status)
    cut.content_type = "application/json"
    cut.content_length = len(body.encode())
    await cut.prepare(request)
    await cut.write(body.encode()[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return cut


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
