"""Anthropic's Messages API as a double speaks it: what it refuses, and how it spells a reply.

Strict where Anthropic is known to be strict (Anthropic, "Messages", "Tool use", "Streaming
messages", "Errors", 2026), and it takes no field that it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from bot.sandbox.model import Json
from bot.sandbox.model_reply import Billed, SaidReply, Stop
from executor.adapters.models.conversation import Call, Heard, Piece, Result, Spoken
from executor.engine.ports import ToolSpec

PATH = "/v1/messages"
_FIELDS = frozenset(
    {
        "model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream",
        "temperature", "top_p", "top_k", "stop_sequences", "metadata", "service_tier", "thinking",
        "output_config",
    }
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_STOPS = {Stop.END: "end_turn", Stop.LENGTH: "max_tokens", Stop.REFUSAL: "refusal"}


class Unacceptable(Exception):
    """A request that the provider would refuse, with what it says of it."""


def error(status: int, code: str, message: str) -> Json:
    """Spell an error."""
    return {"type": "error", "error": {"type": code, "message": message}, "request_id": "req_1"}


def is_let_in(headers: Mapping[str, str], key: str) -> bool:
    """Tell whether the key is right."""
    given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    return given == key and "anthropic-version" in headers


def read(body: Json) -> tuple[str, list[ToolSpec], list[Piece], int]:
    """Read a request: instructions, tools, conversation and the limit; raises ``Unacceptable``."""
    if unknown := sorted(set(body) - _FIELDS):
        raise Unacceptable(f"{unknown[0]}: Extra inputs are not permitted")
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        raise Unacceptable("max_tokens: Field required")
    tools = [
        ToolSpec(tool["name"], tool.get("description", ""), tool["input_schema"])
        for tool in body.get("tools", [])
    ]
    _check_names([tool.name for tool in tools])
    system = body.get("system", "")
    if not isinstance(system, str):
        system = "\n".join(block["text"] for block in system)
    return system, tools, _pieces(body.get("messages", [])), limit


def _check_names(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise Unacceptable("tools: Tool names must be unique.")
    for name in names:
        if not _NAME.fullmatch(name):
            raise Unacceptable(f"tools: {name!r} should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")


def _pieces(messages: list[Json]) -> list[Piece]:
    if not messages or messages[0]["role"] != "user":
        raise Unacceptable("messages: first message must use the user role")
    if messages[-1]["role"] != "user":
        raise Unacceptable("messages: the conversation must end with a user message")
    pieces: list[Piece] = []
    seen: set[str] = set()
    open_calls: dict[str, Call] = {}
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "assistant":
            spoken = _spoken(blocks, seen)
            pieces.append(spoken)
            open_calls = {call.id: call for call in spoken.calls}
            continue
        for block in blocks:
            pieces.append(_heard(block, open_calls))
        if open_calls:
            raise Unacceptable(
                f"`tool_use` ids were found without `tool_result` blocks: {sorted(open_calls)}"
            )
    return pieces


def _spoken(blocks: list[Json], seen: set[str]) -> Spoken:
    texts, calls = [], []
    for block in blocks:
        if block["type"] == "text":
            texts.append(_text(block))
            continue
        if block["type"] != "tool_use" or not isinstance(block.get("input"), dict):
            raise Unacceptable("messages: Input should be a valid dictionary")
        if block["id"] in seen:
            raise Unacceptable("`tool_use` ids must be unique")
        _check_names([block["name"]])
        seen.add(block["id"])
        calls.append(Call(block["id"], block["name"], block["input"]))
    return Spoken("\n".join(texts), tuple(calls))


def _heard(block: Json, open_calls: dict[str, Call]) -> Piece:
    if block["type"] == "text":
        if open_calls:
            raise Unacceptable("`tool_result` blocks must stand before text")
        return Heard(_text(block))
    call = open_calls.pop(block["tool_use_id"], None)
    if block["type"] != "tool_result" or call is None:
        raise Unacceptable("unexpected `tool_use_id` found in `tool_result` blocks")
    content = block["content"]
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    return Result(call, text)


def _text(block: Json) -> str:
    text: str = block["text"]
    if not text.strip():
        raise Unacceptable("messages: text content blocks must contain non-whitespace text")
    return text


def body(reply: SaidReply, billed: Billed, model: str, *, usage: bool) -> Json:
    """Spell a whole reply."""
    return {
        **_head(model),
        "content": [
            *_words(reply),
            *(_use(c.id, c.name, _parsed(c.arguments)) for c in reply.calls),
        ],
        "stop_reason": _stop(reply),
        **({"usage": _counts(billed, billed.output_tokens)} if usage else {}),
    }


def events(reply: SaidReply, billed: Billed, model: str, *, usage: bool) -> list[str]:
    """Spell a reply as server-sent events."""
    counts = {"usage": _counts(billed, 1)} if usage else {"usage": {}}
    start = {**_head(model), "content": [], "stop_reason": None, **counts}
    told: list[Json] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    blocks = [
        *((b, {"type": "text_delta", "text": b["text"]}) for b in _words(reply)),
        *(
            (_use(c.id, c.name, {}), {"type": "input_json_delta", "partial_json": c.arguments})
            for c in reply.calls
        ),
    ]
    for index, (block, delta) in enumerate(blocks):
        opened = {**block, "text": ""} if block["type"] == "text" else block
        told += [
            {"type": "content_block_start", "index": index, "content_block": opened},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    last = {"output_tokens": billed.output_tokens}
    told += [
        {
            "type": "message_delta",
            "delta": {"stop_reason": _stop(reply), "stop_sequence": None},
            "usage": last if usage else {},
        },
        {"type": "message_stop"},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in told]


def _head(model: str) -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_sequence": None,
    }


def _words(reply: SaidReply) -> list[Json]:
    return [{"type": "text", "text": reply.text}] if reply.text else []


def _use(identifier: str, name: str, arguments: object) -> Json:
    return {"type": "tool_use", "id": identifier, "name": name, "input": arguments}


def _parsed(arguments: str) -> object:
    """Read arguments as Anthropic does before it answers; half an object becomes an empty one."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}


def _stop(reply: SaidReply) -> str:
    return "tool_use" if reply.calls and reply.stop is Stop.END else _STOPS[reply.stop]


def _counts(billed: Billed, output: int) -> Json:
    return {
        "input_tokens": billed.input_tokens - billed.cache_read - billed.cache_write,
        "cache_creation_input_tokens": billed.cache_write,
        "cache_read_input_tokens": billed.cache_read,
        "output_tokens": output,
    }
