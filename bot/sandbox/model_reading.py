"""From a conversation on the wire back to the request that it was made from.

So the scripted model can stand behind a provider's wire. It is the inverse of
``executor.adapters.models.conversation``, as far as that model looks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from executor.adapters.models.conversation import GO_ON, Call, Heard, Piece, Result, Spoken
from executor.engine.ports import (
    ModelReply,
    ModelRequest,
    Question,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)

_NEWS = re.compile(r"What your earlier call (\S+)(?: \(\S+\))? came to:\n(\{.*\})", re.DOTALL)
_QUESTION = re.compile(r"(\S+), a person, asks about (\S+), which waits.*?\n(\".*\")\n", re.DOTALL)


def request_of(
    instructions: str, tools: Sequence[ToolSpec], conversation: Sequence[Piece], limit: int
) -> ModelRequest:
    """Read the request that a conversation was laid out from."""
    goal, *rest = conversation
    assert isinstance(goal, Heard), "a conversation begins with the goal"
    turns: list[Turn] = []
    calls: dict[str, ToolCall] = {}
    for piece in rest:
        match piece:
            case Spoken(text, asked):
                made = tuple(_call(called) for called in asked)
                calls |= {call.id: call for call in made}
                turns.append(Turn(ModelReply(text, made, None, None), ()))
            case Result(call, text):
                result = ToolResult(calls[call.id], json.loads(text))
                last = turns[-1]
                turns[-1] = Turn(last.reply, (*last.results, result))
            case Heard(text) if text != GO_ON and turns:
                last = turns[-1]
                news = (*last.afterwards, _news(text, calls))
                turns[-1] = Turn(last.reply, last.results, news)
            case _:
                pass
    return ModelRequest(goal.text, tools, turns, limit, instructions)


def _call(called: Call) -> ToolCall:
    return ToolCall(called.id, called.name, called.arguments)


def _news(text: str, calls: dict[str, ToolCall]) -> ToolResult | Question:
    told = _NEWS.fullmatch(text)
    if told is not None and told[1] in calls:
        return ToolResult(calls[told[1]], json.loads(told[2]))
    asked = _QUESTION.match(text)
    assert asked is not None, f"neither news nor a question: {text[:80]!r}"
    return Question(asked[1], asked[2], json.loads(asked[3]))
