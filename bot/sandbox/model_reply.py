"""What a double of a language model says, before it is spelled as either provider spells it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum

from executor.domain.payloads import JsonObject
from executor.engine.ports import ModelReply

_OCTETS_A_TOKEN = 4


class Stop(StrEnum):
    """Why a reply ended."""

    END = "end"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class SaidCall:
    """One tool call; ``arguments`` are put on the wire as they are, JSON or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class SaidReply:
    """One reply; counts that are ``None`` follow from lengths."""

    text: str = ""
    calls: tuple[SaidCall, ...] = ()
    stop: Stop = Stop.END
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Billed:
    """What one request was charged for; ``input_tokens`` are all that was read."""

    input_tokens: int
    output_tokens: int
    cache_read: int = 0
    cache_write: int = 0


def call(identifier: str, name: str, **arguments: object) -> SaidCall:
    """Make a call with well-formed arguments."""
    return SaidCall(identifier, name, json.dumps(arguments))


def said(reply: ModelReply) -> SaidReply:
    """Say what a model of ours has replied."""
    calls = tuple(SaidCall(c.id, c.name, _spelled(c.arguments)) for c in reply.tool_calls)
    return SaidReply(reply.text, calls)


def bill(reply: SaidReply, body: bytes) -> Billed:
    """Count what a request and its reply take."""
    written = len(reply.text.encode()) + sum(len(c.name + c.arguments) for c in reply.calls)
    read, wrote = reply.input_tokens, reply.output_tokens
    return Billed(
        math.ceil(len(body) / _OCTETS_A_TOKEN) if read is None else read,
        math.ceil(written / _OCTETS_A_TOKEN) if wrote is None else wrote,
        reply.cache_read,
        reply.cache_write,
    )


def _spelled(arguments: JsonObject | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, default=dict)
