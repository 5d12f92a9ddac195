"""The servers that a worker can reach, as the policy names them; each starts at its first use.

The protocol's client is imported with the first server that is asked for anything: without servers
in the policy, nothing of it has to be installed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from executor.adapters.http_exchange import HIDDEN
from executor.domain.effect import Outcome, OutcomeKind
from executor.domain.payloads import JsonObject, digest
from executor.domain.policy_servers import ServerSection
from executor.engine.tool_port import (
    OutgoingCall,
    ServedTool,
    ServerAway,
    ToolServer,
    provider_of,
)

if TYPE_CHECKING:
    from mcp.client import Transport

    from executor.adapters.tools.connection import MakeTransport
    from executor.adapters.tools.mcp_server import McpServer

MISSING_EXTRA = "the policy names servers, which need more packages: pip install 'signoff[tools]'"

_SHORTEST_SECRET = 8
"""A shorter value is no secret, and hiding it would take words out of results."""


def problems_with(sections: Mapping[str, ServerSection], environ: Mapping[str, str]) -> list[str]:
    """Name what is missing here for the servers of a policy: variables, or the client itself."""
    problems = [
        f"{variable} is not set, which the policy names in servers.{name}"
        for name, section in sections.items()
        for variable in section.variables
        if not environ.get(variable, "").strip()
    ]
    if sections:
        try:
            import mcp  # noqa: F401
        except ImportError:
            problems.append(MISSING_EXTRA)
    return problems


class McpServers:
    """Every server that was asked for, by its name and its section: a policy may change."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._servers: dict[tuple[str, bytes], McpServer] = {}

    def named(self, name: str, section: ServerSection) -> ToolServer:
        """Return the server that a policy describes; nothing is started yet."""
        key = (name, digest(section.model_dump(mode="json")))
        if key not in self._servers:
            try:
                from executor.adapters.tools.mcp_server import McpServer
            except ImportError:
                return _NoClient(name)
            self._servers[key] = McpServer(
                name, self._transport(section), section.timeout_seconds, self._hiding(section)
            )
        return self._servers[key]

    async def close(self) -> None:
        """End every session and every process."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    def _transport(self, section: ServerSection) -> MakeTransport:
        from executor.adapters.tools.pipes import piped
        from executor.adapters.tools.posts import posted

        def make(ended: Callable[[], None]) -> Transport:
            given = self._given(section)
            if section.command is not None:
                return piped(section.command, given, ended, self._hiding(section))
            assert section.url is not None, "a section has a command or a url"
            token = None if section.token_from is None else given[section.token_from]
            return posted(section.url, token)

        return make

    def _given(self, section: ServerSection) -> dict[str, str]:
        """Read the variables that a policy names; raises ``ServerAway`` where one is missing."""
        given = {name: self._environ.get(name, "").strip() for name in section.variables}
        missing = [name for name, value in given.items() if not value]
        if missing:
            raise ServerAway(f"{', '.join(missing)} is not set where the executor runs")
        return given

    def _hiding(self, section: ServerSection) -> Callable[[str], str]:
        """Make what takes the values of a server's variables out of what it says."""
        values = [self._environ.get(name, "").strip() for name in section.variables]
        secrets = sorted((v for v in values if len(v) >= _SHORTEST_SECRET), key=len, reverse=True)

        def hide(text: str) -> str:
            for secret in secrets:
                text = text.replace(secret, HIDDEN.decode())
            return text

        return hide


class _NoClient:
    """A server that this worker cannot speak to, for the client is not installed."""

    longest_request_seconds = 1.0

    def __init__(self, name: str) -> None:
        self.name = name

    async def list_tools(self) -> Sequence[ServedTool]:
        """Offer nothing."""
        raise ServerAway(MISSING_EXTRA)

    async def problem_with(self, tool: str, arguments: JsonObject) -> str | None:
        """Know nothing."""
        raise ServerAway(MISSING_EXTRA)

    async def read(self, tool: str, arguments: JsonObject) -> JsonObject:
        """Read nothing."""
        raise ServerAway(MISSING_EXTRA)

    async def call(self, outgoing: OutgoingCall) -> Outcome:
        """Call nothing."""
        evidence = {
            "provider": provider_of(self.name),
            "phase": "never_left",
            "problem": MISSING_EXTRA,
        }
        return Outcome(OutcomeKind.NOT_APPLIED, evidence, retryable=True)
