"""Servers of tools in memory: what they offer, what they answer, and what was called."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from executor.domain.effect import Outcome, OutcomeKind
from executor.domain.payloads import JsonObject
from executor.domain.policy_servers import ServerSection
from executor.engine.tool_port import OutgoingCall, ServedTool, ServerAway

ANY: JsonObject = {"type": "object", "properties": {"id": {"type": "string"}}}


def tool(name: str, description: str = "", *, read_only_hint: bool = False) -> ServedTool:
    """Make a tool that takes anything."""
    return ServedTool(name, description, ANY, read_only_hint)


def returned(text: str = "refunded") -> Outcome:
    """An outcome that proves that the tool ran, with what it returned."""
    evidence: JsonObject = {
        "provider": "mcp:billing",
        "phase": "result",
        "result": {"text": text},
    }
    return Outcome(OutcomeKind.APPLIED, evidence)


class FakeServer:
    """A server in memory; it may be away, and is scripted otherwise."""

    longest_request_seconds = 5.0

    def __init__(self, name: str, tools: Sequence[ServedTool]) -> None:
        self.name = name
        self.tools = list(tools)
        self.away = False
        self.listings = 0
        self.answers: dict[str, JsonObject] = {}
        self.problem: str | None = None
        self.outcomes: list[Outcome] = []
        self.reads: list[tuple[str, JsonObject]] = []
        self.calls: list[dict[str, Any]] = []
        self.arrived = asyncio.Event()
        self.gate: asyncio.Event | None = None

    async def list_tools(self) -> Sequence[ServedTool]:
        """Offer the tools."""
        self.listings += 1
        if self.away:
            raise ServerAway("it could not be started")
        return self.tools

    async def problem_with(self, tool: str, arguments: JsonObject) -> str | None:
        """Refuse what the test wants refused."""
        return self.problem

    async def read(self, tool: str, arguments: JsonObject) -> JsonObject:
        """Answer a reading tool."""
        self.reads.append((tool, arguments))
        if tool not in self.answers:
            raise ServerAway("it died", not_sent=False)
        return self.answers[tool]

    async def call(self, outgoing: OutgoingCall) -> Outcome:
        """Take a call, wait for the gate, and answer with the next scripted outcome."""
        self.calls.append(json.loads(outgoing.payload))
        self.arrived.set()
        if self.gate is not None:
            await self.gate.wait()
        return self.outcomes.pop(0) if self.outcomes else returned()


class FakeServers:
    """Reaches servers in memory by their names, whatever the policy says of them."""

    def __init__(self, *servers: FakeServer) -> None:
        self._servers = {server.name: server for server in servers}

    def named(self, name: str, section: ServerSection) -> FakeServer:
        """Return the server."""
        return self._servers[name]
