"""A model that says what a test wrote for it, when the test lets it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal

from executor.domain.payloads import JsonObject
from executor.domain.price import CostBound
from executor.domain.transition import Refused
from executor.engine.ports import ModelPort, ModelReply, ModelRequest, ToolCall, Usage

Scripted = ModelReply | BaseException | Callable[[ModelRequest], ModelReply]


def says(
    text: str = "",
    *calls: ToolCall,
    input_tokens: int = 100,
    output_tokens: int = 20,
    cost_microusd: int = 500,
) -> ModelReply:
    """Make a reply."""
    return ModelReply(text, calls, Usage(input_tokens, output_tokens), cost_microusd)


def calls(name: str, arguments: JsonObject, call_id: str = "call_0") -> ToolCall:
    """Make a tool call; the id is the same every time unless a test says otherwise."""
    return ToolCall(call_id, name, arguments)


class FakeModel(ModelPort):
    """Gives its script's replies in order, one a call; an exception in it is raised.

    A call beyond the script fails the test with ``AssertionError``. With ``held=True`` every call
    waits for a ``release()`` of its own; ``wait_called(n)`` waits until the n-th call has begun.
    """

    def __init__(
        self, script: Sequence[Scripted], *, worst_case_microusd: int = 1_000, held: bool = False
    ) -> None:
        self._script = list(script)
        self._worst_case = worst_case_microusd
        self._held = held
        self._released = asyncio.Semaphore(0)
        self._begun = asyncio.Condition()
        self.requests: list[ModelRequest] = []
        self.answered = 0
        self.cancelled = 0

    @property
    def name(self) -> str:
        return "fake-model"

    @property
    def called(self) -> int:
        """How many calls have begun."""
        return len(self.requests)

    def cost_bound(self, request: ModelRequest) -> CostBound | Refused:
        """What it can cost does not depend on how much it may write."""
        return CostBound(Decimal(self._worst_case), Decimal(0))

    async def wait_called(self, count: int = 1, *, timeout_seconds: float = 10) -> ModelRequest:
        """Wait until ``count`` calls have begun, and return the request of that call."""
        async with asyncio.timeout(timeout_seconds), self._begun:
            await self._begun.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    def release(self, count: int = 1) -> None:
        """Let ``count`` held calls, now or later ones, go on."""
        for _ in range(count):
            self._released.release()

    async def reply(self, request: ModelRequest) -> ModelReply:
        position = len(self.requests)
        async with self._begun:
            self.requests.append(request)
            self._begun.notify_all()
        assert position < len(self._script), f"call {position + 1} is not in the script"
        try:
            if self._held:
                await self._released.acquire()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        scripted = self._script[position]
        if isinstance(scripted, BaseException):
            raise scripted
        self.answered += 1
        return scripted if isinstance(scripted, ModelReply) else scripted(request)
