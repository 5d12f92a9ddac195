"""The port to servers outside whose tools runs may use; the adapter speaks their protocol.

An adapter makes exactly one request per call, never repeats one, and says itself what an answer
proves. What a server says, of itself or as a result, is data of somebody else's and bounded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from executor.domain.declaration import Declaration
from executor.domain.effect import Capability, EffectKind, Outcome
from executor.domain.payloads import JsonObject
from executor.domain.policy_servers import ServerSection

PROVIDER = "mcp:"
"""How the names of such providers begin, as they stand in intents."""


@dataclass(frozen=True, slots=True)
class ServedTool:
    """A tool as its server describes it; ``parameters`` is a JSON Schema object.

    ``read_only_hint`` is what the server says of it, which nothing here believes.
    """

    name: str
    description: str
    parameters: JsonObject
    read_only_hint: bool = False

    def digest(self) -> str:
        """Name what it takes and what it says it does: SHA-256 in hex."""
        said = {"name": self.name, "description": self.description, "parameters": self.parameters}
        # No canonical form: there is none of numbers that real schemas have, as of 64 bits.
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class OutgoingCall:
    """The stored bytes of one call: canonical JSON of ``tool`` and ``arguments``.

    ``tool_digest`` is that of the tool when people approved its call.
    """

    payload: bytes
    tool_digest: str


class ServerAway(Exception):
    """A server could not be asked, or gave no usable answer; the message is in our own words.

    ``not_sent`` is true only where nothing of the request can have reached it.
    """

    def __init__(self, problem: str, *, not_sent: bool = True) -> None:
        super().__init__(problem)
        self.not_sent = not_sent


class ToolServer(Protocol):
    """One server that a policy names."""

    @property
    def name(self) -> str:
        """Its name in the policy."""

    @property
    def longest_request_seconds(self) -> float:
        """Upper bound of one ``call`` with all that it needs, which it enforces itself."""

    async def list_tools(self) -> Sequence[ServedTool]:
        """Name the tools that the server offers just now; raises ``ServerAway``."""

    async def problem_with(self, tool: str, arguments: JsonObject) -> str | None:
        """Say why the tool's own schema refuses these arguments, or ``None``.

        ``None`` as well where that cannot be told; raises ``ServerAway``.
        """

    async def read(self, tool: str, arguments: JsonObject) -> JsonObject:
        """Run a tool that only reads, once; raises ``ServerAway``."""

    async def call(self, outgoing: OutgoingCall) -> Outcome:
        """Run a tool once; every way this can end is an ``Outcome``, but cancellation."""


class ToolServers(Protocol):
    """The servers that one worker can reach."""

    def named(self, name: str, section: ServerSection) -> ToolServer:
        """Return the server that a policy describes; nothing is started yet."""


def provider_of(server: str) -> str:
    """Name a server as a provider."""
    return f"{PROVIDER}{server}"


def server_of(provider: str) -> str:
    """Name the server that a provider's name stands for."""
    return provider.removeprefix(PROVIDER)


def declared(server: str) -> Declaration:
    """Say what can be promised of a tool: nothing that could be looked up or repeated safely."""
    return Declaration(
        f"Server {server}",
        EffectKind.TOOL_CALL,
        Capability.OPAQUE,
        "somebody who can see what the tool works on",
    )
