"""A provider's reply as the engine takes it: bounded, and honest about what is missing of it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from executor.adapters.models.failures import Charge, without_words
from executor.domain.payloads import JsonObject, JsonValue, storable, storable_text
from executor.engine.ports import ModelReply, ToolCall

LONGEST_TEXT = 100_000
"""Characters of a reply that are kept."""
LONGEST_ARGUMENTS = 100_000
"""Characters of one call's arguments; longer ones are cut, and so are no object any more."""
MOST_CALLS = 16
"""Calls of one reply that are taken; the engine takes no more."""
_LONGEST_NAME = 200
_DEEPEST = 40
"""Objects and lists in each other; what reads them later is recursive."""


def reply_from(response: ModelResponse, charge: Charge, max_output_tokens: int) -> ModelReply:
    """Read a reply; raises ``ModelFailed``, with its charge, for one that says nothing.

    A refusal is a reply in words, and calls that came before it are dropped. Of a reply that was
    cut the last call may be half of one, so it counts as malformed.
    """
    text = storable_text("\n".join(p.content for p in response.parts if isinstance(p, TextPart)))
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    notes: list[str] = []
    if response.finish_reason == "content_filter":
        refusal = (response.provider_details or {}).get("refusal")
        text, calls = text or (refusal if isinstance(refusal, str) else ""), []
        if not text:
            raise without_words("the model's provider refused to answer", charge)
    if response.finish_reason == "error":
        raise without_words("the model's provider could not finish the answer", charge)
    asked = [_call(part) for part in calls[:MOST_CALLS]]
    if response.finish_reason == "length":
        if not text.strip() and not calls:
            problem = f"the model wrote {max_output_tokens} tokens without an answer"
            raise without_words(problem, charge)
        notes.append(f"[The answer was cut at {max_output_tokens} tokens.]")
        if asked and len(calls) <= MOST_CALLS and response.parts[-1] is calls[-1]:
            asked[-1] = ToolCall(asked[-1].id, asked[-1].name, _as_sent(calls[-1].args))
    if len(calls) > MOST_CALLS:
        notes.append(f"[{len(calls) - MOST_CALLS} more calls were left out.]")
    return ModelReply(
        "\n".join(part for part in (_bounded(text, LONGEST_TEXT), *notes) if part),
        tuple(asked),
        charge.usage,
        charge.cost_microusd,
        storable_text(response.provider_response_id or "")[:_LONGEST_NAME],
    )


def _call(part: ToolCallPart) -> ToolCall:
    name = storable_text(part.tool_name)[:_LONGEST_NAME]
    return ToolCall(storable_text(part.tool_call_id)[:_LONGEST_NAME], name, _arguments(part.args))


def _arguments(sent: object) -> JsonObject | str:
    """Read arguments; what is no JSON object stays a text."""
    if sent is None or sent == "":
        return {}
    try:
        read = json.loads(sent) if isinstance(sent, str) else sent
        # Not every number that can be read can be stored.
        spelled = json.dumps(read, allow_nan=False)
        if not isinstance(read, Mapping) or len(spelled) > LONGEST_ARGUMENTS or _too_deep(read):
            return _as_sent(sent)
        kept = storable(read)
    except (ValueError, TypeError, RecursionError):
        return _as_sent(sent)
    assert isinstance(kept, Mapping)
    return kept


def _as_sent(sent: object) -> str:
    try:
        spelled = sent if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        spelled = ""
    return _bounded(storable_text(spelled), LONGEST_ARGUMENTS)


def _too_deep(value: JsonValue) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _within(outer)]
        if not level:
            return False
    return True


def _within(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _bounded(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [… {len(text) - most} more characters]"
