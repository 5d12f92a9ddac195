"""Servers of tools as a policy names them: a rogue of ours behind a pipe, and its log."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from executor.adapters.tools.server_choice import McpServers
from executor.domain.payloads import JsonObject, canonical
from executor.domain.policy_servers import ServerSection
from executor.engine.tool_port import OutgoingCall, ToolServer

_ROGUE = Path(__file__).with_name("rogue_mcp_server.py")


def rogue(log: Path, *arguments: str, **settings: Any) -> ServerSection:
    """Describe the rogue; what it does is written to ``log``."""
    command = (sys.executable, "-I", "-S", str(_ROGUE), str(log), *arguments)
    return ServerSection(command=command, **settings)


def done(log: Path) -> list[str]:
    """Read what the rogue has done."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [line for line in lines if not line.startswith("pid ")]


def processes(log: Path) -> list[int]:
    """Name every process that the rogue ever was."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [int(line.removeprefix("pid ")) for line in lines if line.startswith("pid ")]


@asynccontextmanager
async def reached(environ: Mapping[str, str] | None = None) -> AsyncIterator[McpServers]:
    """Reach servers as a worker does, and end them all."""
    servers = McpServers(environ or {})
    try:
        yield servers
    finally:
        await servers.close()


async def outgoing(server: ToolServer, tool: str, arguments: JsonObject) -> OutgoingCall:
    """Freeze a call of a tool as it is described just now."""
    found = next(t for t in await server.list_tools() if t.name == tool)
    return OutgoingCall(canonical({"tool": tool, "arguments": arguments}), found.digest())
