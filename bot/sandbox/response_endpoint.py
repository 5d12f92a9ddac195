"""`POST /response/<secret>`: what a response URL does.

Ephemeral unless told otherwise; `replace_original` and `delete_original` act on what was clicked.
Refusals are HTTP errors here, since no token is involved. Faults are planned for the method name
`response_url`.
"""

from __future__ import annotations

import json

from aiohttp import web

from bot.sandbox.api_call import ApiError
from bot.sandbox.faults import Faults
from bot.sandbox.message_body import checked_blocks
from bot.sandbox.model import Ephemeral, Json
from bot.sandbox.response_urls import ResponseUrl
from bot.sandbox.wire import Answer, answer_under, send
from bot.sandbox.workspace import Workspace

METHOD = "response_url"


class ResponseEndpoint:
    """Answer the response URLs of one workspace."""

    def __init__(self, workspace: Workspace, faults: Faults) -> None:
        self._workspace = workspace
        self._faults = faults

    async def handle(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["key"]
        try:
            body = json.loads(await request.read())
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return web.json_response({"ok": False, "error": "invalid_payload"}, status=400)
        fault = self._faults.strike(METHOD, body)
        answer = await answer_under(fault, lambda: self._run(key, body))
        record = {"args": body, "status": answer.status, "response": answer.body}
        if fault is not None:
            record["fault"] = fault.fault.value
        self._workspace.record.add("response_url", METHOD, self._workspace.now(), record)
        return await send(request, answer, fault)

    def _run(self, key: str, body: Json) -> Answer:
        url = self._workspace.response_urls.use(key, self._workspace.now())
        if isinstance(url, str):
            return Answer({"ok": False, "error": url}, 404)
        try:
            self._respond(url, body)
        except ApiError as refusal:
            return Answer({"ok": False, "error": refusal.error, **refusal.more}, 400)
        return Answer({"ok": True})

    def _respond(self, url: ResponseUrl, body: Json) -> None:
        workspace = self._workspace
        if body.get("delete_original") is True:
            self._delete(url)
            return
        text = str(body.get("text") or "")
        blocks = checked_blocks(body["blocks"]) if body.get("blocks") else []
        if not text.strip() and not blocks:
            raise ApiError("no_text")
        if body.get("replace_original") is True:
            self._replace(url, text, blocks)
        elif body.get("response_type", "ephemeral") == "in_channel":
            workspace.post(url.channel, workspace.app.user_id, text, blocks, app=workspace.app)
        else:
            workspace.whisper(url.channel, url.user, text, blocks)

    def _replace(self, url: ResponseUrl, text: str, blocks: list[Json]) -> None:
        seen = self._ephemeral(url)
        if seen is not None:
            self._workspace.ephemerals[url.user].remove(seen)
            self._workspace.whisper(url.channel, url.user, text, blocks)
            return
        message = self._workspace.message(url.channel, url.ts or "")
        if message is None:
            raise ApiError("message_not_found")
        self._workspace.revise(message, text, blocks, message.metadata)

    def _delete(self, url: ResponseUrl) -> None:
        seen = self._ephemeral(url)
        if seen is not None:
            self._workspace.ephemerals[url.user].remove(seen)
            self._workspace.changed()
            return
        message = self._workspace.message(url.channel, url.ts or "")
        if message is None:
            raise ApiError("message_not_found")
        self._workspace.delete(message)

    def _ephemeral(self, url: ResponseUrl) -> Ephemeral | None:
        whispered = self._workspace.ephemerals.get(url.user, [])
        return next((e for e in whispered if url.is_ephemeral and e.ts == url.ts), None)
