"""The Web API: `/api/<method>`. Refusals are `ok: false` with HTTP 200, as Slack's are.

Order of checks: the planned fault's change to the world, token, method, scope, rate limit, then
the method itself. A method is one synchronous step, so it commits wholly or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiohttp import web

from bot.sandbox import (
    chat_methods,
    conversation_methods,
    directory_methods,
    validate_method,
    view_methods,
)
from bot.sandbox.api_call import ApiCall, ApiError, parse
from bot.sandbox.faults import Fault, Faults, PlannedFault
from bot.sandbox.model import Installation, Json
from bot.sandbox.wire import Answer, answer_under, rate_limited, send
from bot.sandbox.workspace import Workspace

_READ_SCOPES = {False: "channels", True: "groups"}


@dataclass(frozen=True)
class Method:
    """A method and the scope it needs; `{kind}` becomes channels or groups by the channel."""

    run: Callable[[ApiCall], Json]
    scope: str | None = None


METHODS: Mapping[str, Method] = {
    "auth.test": Method(directory_methods.auth_test),
    "bots.info": Method(directory_methods.bots_info, "users:read"),
    "chat.postMessage": Method(chat_methods.post_message, "chat:write"),
    "chat.update": Method(chat_methods.update, "chat:write"),
    "chat.delete": Method(chat_methods.delete, "chat:write"),
    "chat.postEphemeral": Method(chat_methods.post_ephemeral, "chat:write"),
    "chat.getPermalink": Method(chat_methods.get_permalink),
    "conversations.history": Method(conversation_methods.history, "{kind}:history"),
    "conversations.replies": Method(conversation_methods.replies, "{kind}:history"),
    "conversations.info": Method(conversation_methods.info, "{kind}:read"),
    "conversations.members": Method(conversation_methods.members, "{kind}:read"),
    "users.info": Method(directory_methods.users_info, "users:read"),
    "usergroups.users.list": Method(directory_methods.usergroup_users, "usergroups:read"),
    "team.info": Method(directory_methods.team_info, "team:read"),
    "views.open": Method(view_methods.open_view),
    "views.push": Method(view_methods.push),
    "views.update": Method(view_methods.update),
    "views.publish": Method(view_methods.publish),
}
CONNECT = "apps.connections.open"


class WebApi:
    """Answer calls for one workspace, with the faults planned for them."""

    def __init__(self, workspace: Workspace, faults: Faults) -> None:
        self.workspace = workspace
        self.faults = faults

    async def handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        try:
            args, token = await parse(request)
        except ApiError as refusal:
            return web.json_response({"ok": False, "error": refusal.error})
        if method == CONNECT and "Authorization" not in request.headers:
            token = None  # An app token in the body does not count.
        fault = self.faults.strike(method, args)
        self._change_world(fault, args, token)
        answer = await answer_under(fault, lambda: self._run(method, args, token, fault))
        # The URL of a new connection is a secret; the record says only that there was one.
        shown = {"ok": True} if method == CONNECT and answer.body.get("ok") else answer.body
        record = {"args": args, "status": answer.status, "response": shown}
        if fault is not None:
            record["fault"] = fault.fault.value
        self.workspace.record.add("call", method, self.workspace.now(), record)
        caller = self.workspace.tokens.get(token or "")
        scopes = ",".join(sorted(caller.scopes)) if caller else None
        headers = {"x-oauth-scopes": scopes} if scopes is not None else {}
        return await send(request, answer, fault, headers)

    def _change_world(self, planned: PlannedFault | None, args: Json, token: str | None) -> None:
        fault = planned.fault if planned else None
        workspace = self.workspace
        channel_id = str(args.get("channel", ""))
        channel = workspace.channels.get(channel_id)
        message = workspace.message(channel_id, str(args.get("ts", "")))
        match fault:
            case Fault.TOKEN_REVOKED:
                workspace.revoke(token)
            case Fault.CHANNEL_ARCHIVED if channel is not None:
                channel.is_archived = True
            case Fault.APP_UNINSTALLED:
                workspace.uninstall()
            case Fault.BOT_REMOVED if channel is not None:
                channel.members.discard(workspace.app.user_id)
            case Fault.CHANNEL_DELETED if channel is not None:
                del workspace.channels[channel.id]
            case Fault.CHANNEL_BECOMES_SHARED if channel is not None:
                channel.is_ext_shared = channel.is_shared = True
            case Fault.MESSAGE_DELETED if message is not None:
                workspace.delete(message)
            case Fault.EDIT_WINDOW_CLOSED if message is not None:
                message.edit_window_closed = True
            case _:
                return
        workspace.changed()

    def _run(
        self, method: str, args: Json, token: str | None, planned: PlannedFault | None
    ) -> Answer:
        try:
            if method == "blocks.validate":
                return Answer(validate_method.run(args))
            if method == CONNECT:
                return Answer(self._open_connection(token))
            caller = self._authenticated(token)
            known = METHODS.get(method)
            if known is None:
                raise ApiError("unknown_method", req_method=method)
            self._require_scope(known, caller, args)
            wait = self.workspace.limits.retry_after(
                method, args, self.workspace.channels, self.workspace.now()
            )
            if wait is not None:
                return rate_limited(wait)
            call = ApiCall(self.workspace, method, args, token, caller)
            if planned is not None and planned.fault is Fault.HISTORY_LAGS:
                call.hide_newest = planned.count
            call.trim_text = planned is not None and planned.fault is Fault.TEXT_TRIMMED
            return Answer({"ok": True, **known.run(call)})
        except ApiError as refusal:
            return Answer({"ok": False, "error": refusal.error, **refusal.more})

    def _authenticated(self, token: str | None) -> Installation:
        if not token:
            raise ApiError("not_authed")
        if token in self.workspace.revoked:
            raise ApiError(self.workspace.revoked[token])
        caller = self.workspace.tokens.get(token)
        if caller is None:
            raise ApiError("invalid_auth")
        return caller

    def _open_connection(self, token: str | None) -> Json:
        if not token:
            raise ApiError("not_authed")
        if token != self.workspace.app_token:
            known = token in self.workspace.tokens
            raise ApiError("not_allowed_token_type" if known else "invalid_auth")
        base = self.workspace.public_url.replace("http", "ws", 1)
        return {"ok": True, "url": f"{base}/link/{self.workspace.sockets.issue_ticket()}"}

    def _require_scope(self, method: Method, caller: Installation, args: Json) -> None:
        if method.scope is None:
            return
        channel = self.workspace.channels.get(str(args.get("channel", "")))
        needed = method.scope.format(kind=_READ_SCOPES[bool(channel and channel.is_private)])
        if needed not in caller.scopes:
            provided = ",".join(sorted(caller.scopes))
            raise ApiError("missing_scope", needed=needed, provided=provided)
