"""A port of 127.0.0.1 on which a double listens, stops listening, and listens again."""

from __future__ import annotations

import asyncio

from aiohttp import web


class Listener:
    """Serve one application; its port stays the same for as long as it lives."""

    def __init__(self, app: web.Application, port: int = 0) -> None:
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        self._server: asyncio.Server | None = None
        self._port = port

    @property
    def url(self) -> str:
        """The base URL, once `listen` was called."""
        return f"http://127.0.0.1:{self._port}"

    async def listen(self) -> None:
        """Accept connections; a second call changes nothing."""
        if self._server is not None:
            return
        if self._runner.server is None:
            await self._runner.setup()
        assert self._runner.server is not None
        self._server = await asyncio.get_running_loop().create_server(
            self._runner.server, "127.0.0.1", self._port
        )
        self._port = int(self._server.sockets[0].getsockname()[1])

    def refuse(self) -> None:
        """Refuse connections from now on; those that are open go on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def stop(self) -> None:
        """Stop listening and end what is still being served."""
        self.refuse()
        await self._runner.cleanup()
