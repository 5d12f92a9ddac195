"""A model request as a conversation that every provider takes, in words of our own.

Providers are strict: each call has one result, which follows at once, ids are never used twice,
names are made of few characters, and somebody who is not the model has the last word. What a model
has written need not be like that, and providers' own ids may repeat, so calls get new ids, which
follow from their places alone: equal requests make equal conversations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject, storable_text
from executor.engine.ports import ModelRequest, Question, ToolCall, ToolResult, Turn

NOT_ANSWERED = '{"error":"not_answered"}'
GO_ON = "Nothing else has come in. Go on."
MALFORMED = "not_a_json_object"

_NOT_IN_NAMES = re.compile("[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_FIXED_TOKENS = 1_500
"""What a provider puts around a request with tools: Anthropic's own instructions for them are the
longest that is documented (346 to 804 tokens, by model)."""
_TOKENS_A_PIECE = 64
"""What stands around one message, call, result or tool."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a person, or we, say to the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the model's, under the id that it has in this conversation."""

    id: str
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Spoken:
    """One reply of the model's."""

    text: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What a call came to, as JSON."""

    call: Call
    text: str


Piece: TypeAlias = Heard | Spoken | Result


def conversation_of(request: ModelRequest) -> list[Piece]:
    """Lay out a request; the instructions and the tools stand beside it."""
    pieces: list[Piece] = [Heard(storable_text(request.goal))]
    earlier: list[tuple[ToolCall, Call]] = []
    for number, turn in enumerate(request.turns, start=1):
        calls = tuple(
            Call(_id(number, ordinal), _name(call.name), _arguments(call.arguments))
            for ordinal, call in enumerate(turn.reply.tool_calls, start=1)
        )
        text = storable_text(turn.reply.text).strip()
        if text or calls:
            pieces.append(Spoken(text, calls))
        results = _results(turn)
        pieces += [Result(c, _spelled(r)) for c, r in zip(calls, results, strict=True)]
        for item in turn.afterwards:
            pieces.append(Heard(_news(item, earlier)))
        asked = zip(turn.reply.tool_calls, calls, results, strict=True)
        earlier += [(theirs, ours) for theirs, ours, result in asked if _waits(result)]
    if isinstance(pieces[-1], Spoken):
        pieces.append(Heard(GO_ON))
    return pieces


def most_input_tokens(request: ModelRequest, conversation: Sequence[Piece]) -> int:
    """Bound what a request is counted as.

    Every token of the tokenisers in use stands for at least one octet of UTF-8.
    """
    texts = [request.instructions]
    pieces = len(request.tools)
    for tool in request.tools:
        texts += [tool.name, tool.description, _json(tool.parameters)]
    for piece in conversation:
        pieces += 1
        match piece:
            case Heard(text):
                texts.append(text)
            case Result(call, text):
                texts += [call.id, text]
            case Spoken(text, calls):
                pieces += len(calls)
                texts += [text, *(f"{c.id}{c.name}{_json(c.arguments)}" for c in calls)]
    octets = sum(len(text.encode(errors="surrogatepass")) for text in texts)
    return octets + pieces * _TOKENS_A_PIECE + _FIXED_TOKENS


def _results(turn: Turn) -> list[JsonObject | None]:
    """List the results in the order of the calls: they stand in it, and some may be missing."""
    left = list(turn.results)
    found: list[JsonObject | None] = []
    for call in turn.reply.tool_calls:
        place = next((i for i, answer in enumerate(left) if answer.call == call), None)
        found.append(None if place is None else left.pop(place).result)
    return found


def _waits(result: JsonObject | None) -> bool:
    return not result or result.get("status") == OperationStatus.AWAITING


def _news(item: ToolResult | Question, earlier: list[tuple[ToolCall, Call]]) -> str:
    if isinstance(item, Question):
        return storable_text(item.marked())
    place = next((i for i, (call, _) in enumerate(earlier) if call == item.call), None)
    told = _name(item.call.name)
    if place is not None:
        # Each call is told of once, so the next equal one is another.
        told = f"{earlier.pop(place)[1].id} ({told})"
    return f"What your earlier call {told} came to:\n{_spelled(item.result)}"


def _id(turn: int, ordinal: int) -> str:
    # Nine letters and digits: what the strictest of the OpenAI-compatible servers take.
    return f"t{turn:04d}c{ordinal:03d}"


def _name(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "_"


def _arguments(arguments: JsonObject | str) -> JsonObject:
    """Spell what the model sent as arguments, also where it was no object."""
    return {MALFORMED: arguments} if isinstance(arguments, str) else arguments


def _spelled(result: JsonObject | None) -> str:
    return NOT_ANSWERED if result is None else _json(result)


def _json(value: JsonObject) -> str:
    # What maps without being a dictionary is spelled as one.
    spelled = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    return storable_text(spelled)
