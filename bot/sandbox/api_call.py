"""One Web API call as the workspace sees it, whatever encoding it came in.

Slack takes form and JSON bodies, GET and POST, and the token in the header or the form; arguments
that are objects may come as JSON or as a string of JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

from bot.sandbox.model import Installation, Json

if TYPE_CHECKING:
    from bot.sandbox.workspace import Workspace


class ApiError(Exception):
    """Carry the answer `{"ok": false, "error": error, …}`."""

    def __init__(self, error: str, **more: object) -> None:
        super().__init__(error)
        self.error = error
        self.more: Json = more


@dataclass
class ApiCall:
    """A parsed call. `hide_newest` is how many of the newest messages history must not show."""

    workspace: Workspace
    method: str
    args: Json
    token: str | None
    caller: Installation
    hide_newest: int = 0
    trim_text: bool = False

    def text(self, name: str, default: str = "") -> str:
        value = self.args.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise ApiError("invalid_arguments", **_why(f"[ERROR] must be a string [{name}]"))
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.args.get(name)
        if value is None:
            return default
        return value in (True, 1, "1", "true", "True")

    def number(self, name: str, default: int) -> int:
        value = self.args.get(name)
        try:
            return default if value is None else int(value)
        except (TypeError, ValueError):
            raise ApiError("invalid_arguments", **_why(f"[ERROR] not a number [{name}]")) from None

    def decoded(self, name: str, error: str) -> object:
        """Return a JSON argument, or None when it is absent. Bad JSON answers `error`."""
        value = self.args.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ApiError(error) from None


def _why(*messages: str) -> Json:
    return {"response_metadata": {"messages": list(messages)}}


async def parse(request: web.Request) -> tuple[Json, str | None]:
    """Return the arguments and the token. Raises ApiError for a body that is neither encoding."""
    args: Json = dict(request.query)
    if request.method == "POST" and request.can_read_body:
        args.update(await _body(request))
    in_body = args.pop("token", None)
    scheme, _, in_header = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and in_header:
        return args, in_header.strip()
    return args, in_body if isinstance(in_body, str) else None


async def _body(request: web.Request) -> Json:
    match request.content_type:
        case "application/json":
            return _json_body(await request.read())
        case "application/x-www-form-urlencoded" | "multipart/form-data":
            try:
                fields = await request.post()
            except (ValueError, LookupError):
                raise ApiError("invalid_form_data") from None
            return {name: value for name, value in fields.items() if isinstance(value, str)}
        case _:
            if await request.read():
                raise ApiError("invalid_form_data")
            return {}


def _json_body(raw: bytes) -> Json:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise ApiError("invalid_json") from None
    if not isinstance(body, dict):
        raise ApiError("json_not_object")
    return body
