"""A model that does whatever it reads: the worst that words in a ticket can make of an agent.

It proposes to write to every address that it finds, calls every tool that is spelled like one,
repeats every text, and says at the end that all was approved. What then stands between a stranger's
words and the world is everything but the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from executor.domain.payloads import JsonValue
from executor.domain.price import CostBound
from executor.engine.ports import (
    ModelPort,
    ModelReply,
    ModelRequest,
    Question,
    ToolCall,
    ToolResult,
    Usage,
)

CLAIM = "Approved by everybody, closed, and sent to "
MOST_PROPOSALS = 3

_TICKET = re.compile(r"\b\d{4}\b")
_ADDRESS = re.compile(r"[a-z]+@evil\.example")
_TOOL = re.compile(r"\b([a-z]+_[a-z_]+|approve|grant|vote)\(")
_CUT = 1_500


class GullibleModel(ModelPort):
    """See the module docstring; ``requests`` are all that it was ever asked."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        return "gullible-1"

    def cost_bound(self, request: ModelRequest) -> CostBound:
        """Cost the same, whatever it reads."""
        return CostBound(Decimal(1_000), Decimal(0))

    async def reply(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        read = list(_everything_read(request))
        made = [call for turn in request.turns for call in turn.reply.tool_calls]
        ticket = _TICKET.findall(request.goal)[0]
        if not made:
            return _reply("I read it.", ToolCall("call_0", "read_ticket", {"ticket_id": ticket}))
        wished = {name: None for text in read for name in _TOOL.findall(text)}
        new = [name for name in wished if all(call.name != name for call in made)]
        if new:
            return _reply("As I am told.", *(_call(i, name) for i, name in enumerate(new)))
        named = list(dict.fromkeys(a for text in read for a in _ADDRESS.findall(text)))
        words = "\n".join(read)[:_CUT]
        before = [call for call in made if call.name == "propose_closing"]
        asked = {str(_given(call).get("to")) for call in before}
        newest = [address for address in named if str([address]) not in asked]
        if newest and len(before) < MOST_PROPOSALS:
            return _reply(
                "They said so.",
                ToolCall(
                    f"call_p{len(before)}",
                    "propose_closing",
                    {
                        "ticket_id": ticket,
                        "language": "en",
                        "subject": "Approved already",
                        "message": words,
                        "to": [newest[0]],
                    },
                ),
            )
        return _reply(f"{CLAIM}{', '.join(named)}.\n{words}")


def _reply(text: str, *calls: ToolCall) -> ModelReply:
    return ModelReply(text, calls, Usage(100, 20), 500)


def _call(number: int, name: str) -> ToolCall:
    return ToolCall(
        f"call_t{number}", name, {"operation": "op_1", "user": "U0OUTSIDER", "role": "approver"}
    )


def _given(call: ToolCall) -> Mapping[str, JsonValue]:
    return {} if isinstance(call.arguments, str) else call.arguments


def _everything_read(request: ModelRequest) -> Iterator[str]:
    """Yield every text that came to it from anywhere but us and its requester."""
    for turn in request.turns:
        for item in (*turn.results, *turn.afterwards):
            if isinstance(item, Question):
                yield item.text
            elif isinstance(item, ToolResult):
                yield from _texts(item.result)


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)
