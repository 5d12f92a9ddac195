"""The JSON that the demo's web page lives on: the state, its changes, and a person's hands.

Only pages of this machine may use it. A foreign page could reach 127.0.0.1 by rebinding its name,
so a request whose Host or Origin is not local is refused, and actions take JSON bodies only.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

from bot.sandbox.delivery import Delivery, NotConnected
from bot.sandbox.interaction import Person
from bot.sandbox.model import Channel, Ephemeral, Json, Message, OpenView
from bot.sandbox.payloads import NothingToClick
from bot.sandbox.workspace import Workspace

LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_STREAMS = 64
HEARTBEAT_SECONDS = 15.0


class PageApi:
    """Serve one workspace to the page."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._streams = 0

    async def state(self, request: web.Request) -> web.Response:
        require_local(request)
        return web.json_response(state_json(self._workspace))

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Send `data: {"version": n}` now and at each change; changes in between are merged."""
        require_local(request)
        if self._streams >= MAX_STREAMS:
            raise web.HTTPServiceUnavailable(text="too many open event streams")
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        self._streams += 1
        try:
            await response.prepare(request)
            await self._stream(response)
        except ConnectionResetError:
            pass  # The page was closed; nobody is left to be told.
        finally:
            self._streams -= 1
        return response

    async def _stream(self, response: web.StreamResponse) -> None:
        seen = -1
        while not self._workspace.closed:
            if self._workspace.version == seen:
                await response.write(b": still here\n\n")
            else:
                seen = self._workspace.version
                await response.write(b'data: {"version": %d}\n\n' % seen)
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._workspace.next_change(seen)
            except TimeoutError:
                continue

    async def click(self, request: web.Request) -> web.Response:
        """Take {user, channel, ts, action_id, block_id?, option?}, or view_id for channel, ts."""

        async def act(person: Person, body: Json) -> Delivery:
            block_id, option = body.get("block_id"), body.get("option")
            if "view_id" in body:
                return await person.click_in_view(
                    body["view_id"], body["action_id"], block_id=block_id, option=option
                )
            return await person.click(
                body["channel"], body["ts"], body["action_id"], block_id=block_id, option=option
            )

        return await self._act(request, act)

    async def slash(self, request: web.Request) -> web.Response:
        """Take {user, channel, text}; text is the whole line, such as "/signoff run 4101"."""

        async def act(person: Person, body: Json) -> Delivery:
            command, _, text = str(body["text"]).strip().partition(" ")
            return await person.slash(body["channel"], command, text.strip())

        return await self._act(request, act)

    async def submit(self, request: web.Request) -> web.Response:
        """Take {user, view_id, values}; values is {block_id: {action_id: value}}."""
        return await self._act(
            request, lambda person, body: person.submit_view(body["view_id"], body.get("values"))
        )

    async def close_view(self, request: web.Request) -> web.Response:
        """Take {user, view_id}."""
        return await self._act(request, lambda person, body: person.close_view(body["view_id"]))

    async def home(self, request: web.Request) -> web.Response:
        """Take {user}: that person opens the Home tab."""
        return await self._act(request, lambda person, _: person.open_home())

    async def mention(self, request: web.Request) -> web.Response:
        """Take {user, channel, text, thread_ts?}."""
        return await self._act(
            request,
            lambda person, body: person.mention(
                body["channel"], str(body["text"]), thread_ts=body.get("thread_ts")
            ),
        )

    async def _act(
        self, request: web.Request, act: Callable[[Person, Json], Awaitable[Delivery | None]]
    ) -> web.Response:
        require_local(request)
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="send application/json")
        try:
            body = json.loads(await request.read())
            person = self._workspace.person(body["user"])
            delivery = await act(person, body)
        except (ValueError, TypeError, KeyError) as error:
            problem = f"bad request: {type(error).__name__} {error}"
            return web.json_response({"error": problem}, status=400)
        except NothingToClick as refusal:
            return web.json_response({"error": str(refusal)}, status=409)
        except NotConnected as refusal:
            return web.json_response({"error": str(refusal)}, status=503)
        if delivery is None:
            return web.json_response({"sees": "nothing", "status": None, "seconds": 0.0})
        return web.json_response(delivery.to_json() | {"view_errors": delivery.view_errors})


def require_local(request: web.Request) -> None:
    """Refuse a request that a page from elsewhere may have caused."""
    origin = request.headers.get("Origin")
    if _name(f"//{request.headers.get('Host', '')}") not in LOCAL_NAMES:
        raise web.HTTPForbidden(text="this sandbox answers to local names only")
    if origin is not None and _name(origin) not in LOCAL_NAMES:
        raise web.HTTPForbidden(text="this sandbox answers to local pages only")


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def state_json(workspace: Workspace) -> Json:
    """Return all that the page shows. Blocks are literal text, not encoded."""
    home = workspace.team.id
    return {
        "team": {"id": home, "name": workspace.team.name},
        "users": [
            {
                "id": user.id,
                "name": user.name,
                "real_name": user.real_name,
                "role": "agent" if user.id in workspace.agents else user.role(home),
                "title": user.title,
            }
            for user in workspace.users.values()
        ],
        "channels": [_channel_json(workspace, c) for c in workspace.channels.values()],
        "ephemerals": {
            user: [_ephemeral_json(e) for e in workspace.ephemerals.get(user, [])]
            for user in workspace.users
        },
        "views": {user: _view_json(workspace.view_of(user)) for user in workspace.users},
        "homes": {user: _view_json(workspace.homes.get(user)) for user in workspace.users},
        "version": workspace.version,
    }


def _channel_json(workspace: Workspace, channel: Channel) -> Json:
    visible = workspace.visible(channel.id)
    return {
        "id": channel.id,
        "name": channel.name,
        "members": sorted(channel.members),
        "is_archived": channel.is_archived,
        "messages": [_message_json(message, visible) for message in visible],
    }


def _message_json(message: Message, visible: list[Message]) -> Json:
    replies = sum(m.is_reply and m.thread_ts == message.ts for m in visible)
    return {
        "ts": message.ts,
        "user": message.user,
        "bot": message.bot_id is not None,
        "text": message.text,
        "blocks": message.blocks,
        "thread_ts": message.thread_ts,
        "edited": message.edited,
        "reply_count": replies,
    }


def _ephemeral_json(seen: Ephemeral) -> Json:
    return {"channel": seen.channel, "text": seen.text, "blocks": seen.blocks, "ts": seen.ts}


def _view_json(opened: OpenView | None) -> Json | None:
    return None if opened is None else {"id": opened.id, **opened.view}
