"""OpenAI's Chat Completions API as a double speaks it: what it refuses, how it spells a reply.

Strict where OpenAI is known to be strict (OpenAI, "Create chat completion", "Function calling",
"Error codes", 2026), and it takes no field that it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from bot.sandbox.anthropic_wire import Unacceptable
from bot.sandbox.model import Json
from bot.sandbox.model_reply import Billed, SaidReply, Stop
from executor.adapters.models.conversation import Call, Heard, Piece, Result, Spoken
from executor.engine.ports import ToolSpec

PATH = "/v1/chat/completions"
_FIELDS = frozenset(
    {
        "model", "messages", "max_completion_tokens", "max_tokens", "tools", "tool_choice",
        "stream", "stream_options", "temperature", "top_p", "stop", "n", "service_tier", "user",
        "parallel_tool_calls", "reasoning_effort", "seed",
    }
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ONLY_NEWER = re.compile(r"(?:gpt-5|o[1-9])")
_STOPS = {Stop.END: "stop", Stop.LENGTH: "length", Stop.REFUSAL: "stop"}


def error(status: int, code: str, message: str) -> Json:
    """Spell an error."""
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


def is_let_in(headers: Mapping[str, str], key: str) -> bool:
    """Tell whether the key is right; a server without one asks for none."""
    return not key or headers.get("authorization") == f"Bearer {key}"


def read(body: Json) -> tuple[str, list[ToolSpec], list[Piece], int]:
    """Read a request: instructions, tools, conversation and the limit; raises ``Unacceptable``."""
    if unknown := sorted(set(body) - _FIELDS):
        raise Unacceptable(f"Unrecognized request argument supplied: {unknown[0]}")
    if "stream_options" in body and not body.get("stream"):
        raise Unacceptable(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled"
        )
    functions = [tool["function"] for tool in body.get("tools", [])]
    tools = [ToolSpec(f["name"], f.get("description", ""), f["parameters"]) for f in functions]
    for tool in tools:
        _check_name(tool.name)
    messages = list(body.get("messages", []))
    instructions = ""
    while messages and messages[0]["role"] in ("system", "developer"):
        instructions += messages.pop(0)["content"]
    return instructions, tools, _pieces(messages), _limit(body)


def _limit(body: Json) -> int:
    if "max_tokens" in body and _ONLY_NEWER.match(body["model"]):
        raise Unacceptable("Unsupported parameter: 'max_tokens' is not supported with this model")
    given = [body[name] for name in ("max_completion_tokens", "max_tokens") if name in body]
    if len(given) != 1 or not isinstance(given[0], int) or given[0] < 1:
        # The real one takes a request without a limit; whoever has to hold its price must not.
        raise Unacceptable("exactly one of max_completion_tokens and max_tokens is required here")
    return given[0]


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise Unacceptable(f"Invalid name {name!r}: it does not match '^[a-zA-Z0-9_-]{{1,64}}$'")


def _pieces(messages: list[Json]) -> list[Piece]:
    if not messages:
        raise Unacceptable("[] is too short - 'messages'")
    pieces: list[Piece] = []
    seen: set[str] = set()
    open_calls: dict[str, Call] = {}
    for message in messages:
        if message["role"] == "tool":
            call = open_calls.pop(message["tool_call_id"], None)
            if call is None:
                raise Unacceptable("a 'tool' message must answer a preceding 'tool_calls' id")
            pieces.append(Result(call, message["content"]))
            continue
        if open_calls:
            raise Unacceptable(
                f"these tool_call_ids did not have response messages: {sorted(open_calls)}"
            )
        if message["role"] == "user":
            pieces.append(Heard(message["content"]))
            continue
        if message["role"] != "assistant":
            raise Unacceptable(f"Invalid value: {message['role']!r}")
        spoken = _spoken(message, seen)
        pieces.append(spoken)
        open_calls = {call.id: call for call in spoken.calls}
    if open_calls:
        raise Unacceptable(f"tool_call_ids without response messages: {sorted(open_calls)}")
    return pieces


def _spoken(message: Json, seen: set[str]) -> Spoken:
    calls = []
    for asked in message.get("tool_calls") or []:
        function = asked["function"]
        if asked["id"] in seen:
            raise Unacceptable(f"Duplicate value for 'tool_call_id' of '{asked['id']}'")
        if not isinstance(function["arguments"], str):
            raise Unacceptable("Invalid type for 'arguments': expected a string")
        _check_name(function["name"])
        seen.add(asked["id"])
        calls.append(Call(asked["id"], function["name"], json.loads(function["arguments"])))
    text = message.get("content") or ""
    if not text and not calls:
        raise Unacceptable("expected a string in 'content', got null")
    return Spoken(text, tuple(calls))


def body(reply: SaidReply, billed: Billed, model: str, *, usage: bool) -> Json:
    """Spell a whole reply."""
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.stop is Stop.REFUSAL:
        message |= {"content": None, "refusal": reply.text or "no"}
    elif reply.calls:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": _stop(reply), "logprobs": None}
    counts = {"usage": _counts(billed)} if usage else {}
    return {**_head(model), "object": "chat.completion", "choices": [choice], **counts}


def events(reply: SaidReply, billed: Billed, model: str, *, usage: bool) -> list[str]:
    """Spell a reply as server-sent events."""
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    if reply.stop is Stop.REFUSAL:
        deltas.append({"refusal": reply.text or "no"})
    else:
        deltas += [{"content": reply.text}] if reply.text else []
        deltas += [
            {"tool_calls": [{"index": index, **called}]}
            for index, called in enumerate(_calls(reply))
        ]
    choices: list[Json] = [
        *({"index": 0, "delta": delta, "finish_reason": None} for delta in deltas),
        {"index": 0, "delta": {}, "finish_reason": _stop(reply)},
    ]
    head = {**_head(model), "object": "chat.completion.chunk"}
    told: list[Json] = [{**head, "choices": [choice], "usage": None} for choice in choices]
    if usage:
        told.append({**head, "choices": [], "usage": _counts(billed)})
    return [*(f"data: {json.dumps(event)}\n\n" for event in told), "data: [DONE]\n\n"]


def _head(model: str) -> Json:
    return {"id": "chatcmpl-1", "created": 1_800_000_000, "model": model}


def _calls(reply: SaidReply) -> list[Json]:
    return [
        {
            "id": called.id,
            "type": "function",
            "function": {"name": called.name, "arguments": called.arguments},
        }
        for called in reply.calls
    ]


def _stop(reply: SaidReply) -> str:
    return "tool_calls" if reply.calls and reply.stop is Stop.END else _STOPS[reply.stop]


def _counts(billed: Billed) -> Json:
    return {
        "prompt_tokens": billed.input_tokens,
        "completion_tokens": billed.output_tokens,
        "total_tokens": billed.input_tokens + billed.output_tokens,
        "prompt_tokens_details": {"cached_tokens": billed.cache_read, "audio_tokens": 0},
    }
