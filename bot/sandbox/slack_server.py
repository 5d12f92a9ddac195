"""The workspace over HTTP: the Web API, the response URLs and the page's own small API.

`SlackServer` is for tests; `routes` mounts the same handlers in an application that already runs.
"""

from __future__ import annotations

from types import TracebackType

from aiohttp import web

from bot.sandbox.faults import Faults
from bot.sandbox.page_api import PageApi
from bot.sandbox.record import Record
from bot.sandbox.response_endpoint import ResponseEndpoint
from bot.sandbox.socket_mode import SocketEndpoint
from bot.sandbox.web_api import WebApi
from bot.sandbox.workspace import Workspace

MAX_BODY_BYTES = 4 * 1024 * 1024


def routes(workspace: Workspace, faults: Faults | None = None) -> web.RouteTableDef:
    """Return every handler of the sandbox, to be added to an aiohttp application.

    The application's owner sets `workspace.public_url` to where it listens, so that response URLs
    lead back, and calls `workspace.close()` on shutdown, so that event streams end.
    """
    planned = Faults() if faults is None else faults
    api = WebApi(workspace, planned)
    responses = ResponseEndpoint(workspace, planned)
    page = PageApi(workspace)
    table = web.RouteTableDef()
    table.get("/api/{method}")(api.handle)
    table.post("/api/{method}")(api.handle)
    table.post("/response/{key}")(responses.handle)
    table.get("/link/{ticket}")(SocketEndpoint(workspace).handle)
    table.get("/sandbox/state")(page.state)
    table.get("/sandbox/events")(page.events)
    table.post("/sandbox/click")(page.click)
    table.post("/sandbox/slash")(page.slash)
    table.post("/sandbox/submit")(page.submit)
    table.post("/sandbox/close_view")(page.close_view)
    table.post("/sandbox/mention")(page.mention)
    table.post("/sandbox/home")(page.home)
    return table


class SlackServer:
    """Serve one workspace on a free port of 127.0.0.1 while the `async with` lasts."""

    def __init__(
        self,
        workspace: Workspace | None = None,
        *,
        faults: Faults | None = None,
        bot_url: str | None = None,
        port: int = 0,
    ) -> None:
        self.workspace = Workspace.seeded() if workspace is None else workspace
        self.faults = Faults() if faults is None else faults
        if bot_url is not None:
            self.workspace.connect(bot_url)
        self._port = port
        self._runner: web.AppRunner | None = None

    @property
    def record(self) -> Record:
        return self.workspace.record

    @property
    def url(self) -> str:
        return self.workspace.public_url

    @property
    def api_url(self) -> str:
        """Return the value for SLACK_API_URL; it ends with /api/."""
        return f"{self.url}/api/"

    async def __aenter__(self) -> SlackServer:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.add_routes(routes(self.workspace, self.faults))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.workspace.public_url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.faults.clear()
        self.workspace.close()
        self.workspace.sockets.drop()
        try:
            await self.workspace.event_retries.stop()
        finally:
            if self._runner is not None:
                await self._runner.cleanup()
