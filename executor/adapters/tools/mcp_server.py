"""One server that speaks the Model Context Protocol, by the official client.

What an answer to a call proves (specification, *Tools*, *Error handling*): a result without
``isError`` is the tool's word that it ran. A JSON-RPC error *method not found* or *invalid params*
is how a server refuses a call before it runs a tool, and so are the HTTP statuses of an endpoint
that turns a request away. A result with ``isError`` comes from within the tool, which may have done
a part of its work: unknown. So is everything else once an octet of the call has left.

A tool that is not what people approved any more is not called; see ``ServedTool.digest``.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from executor.adapters.tools.argument_check import problem_with_arguments
from executor.adapters.tools.bounded_result import Hide, bounded_result
from executor.adapters.tools.connection import CONNECT_SECONDS, Connection, MakeTransport
from executor.adapters.tools.departure import DEPARTURE, Departure
from executor.domain.effect import Outcome, OutcomeKind
from executor.domain.payloads import JsonObject, JsonValue
from executor.engine.tool_port import OutgoingCall, ServedTool, ServerAway, provider_of

LISTING_SECONDS = 10.0
"""How long a server may take to name its tools."""

LISTING_LASTS_SECONDS = 60.0
AWAY_LASTS_SECONDS = 60.0
"""How long a server that was away is not asked again what it offers."""

MOST_PAGES = 20
MOST_TOOLS = 500
_NAME = re.compile(r"[A-Za-z0-9_./:-]{1,128}")

LONGEST_READ = 20_000
"""Characters of what a reading tool returns that a model gets to read."""
LONGEST_KEPT = 8_000
"""Characters of an effect's result that are kept with its attempt."""
_LONGEST_SAID = 1_000

_TURNED_AWAY = frozenset({401, 403, 404, 405, 429})
_MAY_PASS = frozenset({404, 429})
_REFUSED = frozenset(
    {
        types.METHOD_NOT_FOUND,
        types.INVALID_PARAMS,
        types.HEADER_MISMATCH,
        types.UNSUPPORTED_PROTOCOL_VERSION,
    }
)

_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


class _NotAsApproved(Exception):
    """The tool is gone, or is described differently than when its call was approved."""


class McpServer:
    """A server that a policy names; its session begins at the first use."""

    def __init__(
        self, name: str, transport: MakeTransport, timeout_seconds: float, hide: Hide
    ) -> None:
        self.name = name
        self._transport = transport
        self._timeout_seconds = timeout_seconds
        self._hide = hide
        self._connections: list[Connection] = []
        self._listed: tuple[Connection, float, Sequence[ServedTool]] | None = None
        self._away: tuple[float, str] | None = None

    @property
    def longest_request_seconds(self) -> float:
        """Upper bound of one call: of starting, of listing, and of the call itself."""
        return CONNECT_SECONDS + LISTING_SECONDS + self._timeout_seconds

    async def list_tools(self) -> Sequence[ServedTool]:
        """Name what is offered, from what was listed a short while ago if it was."""
        connection, now = self._connection(), time.monotonic()
        if self._listed is not None and self._listed[0] is connection and now < self._listed[1]:
            return self._listed[2]
        if self._away is not None and now < self._away[0]:
            raise ServerAway(self._away[1])
        try:
            return await self._list(connection)
        except ServerAway as error:
            self._away = (time.monotonic() + AWAY_LASTS_SECONDS, str(error))
            raise

    async def problem_with(self, tool: str, arguments: JsonObject) -> str | None:
        """Say why the tool's own schema refuses these arguments, or ``None``."""
        found = next((t for t in await self.list_tools() if t.name == tool), None)
        return None if found is None else problem_with_arguments(found.parameters, arguments)

    async def read(self, tool: str, arguments: JsonObject) -> JsonObject:
        """Run a tool that only reads, once."""
        problem, departure = "it gave no usable answer", Departure()
        try:
            async with asyncio.timeout(CONNECT_SECONDS + self._timeout_seconds):
                result = await self._once(tool, arguments, departure)
        except TimeoutError:
            problem = f"it did not answer within {self._timeout_seconds:g} s"
        except MCPError as error:
            if error.code in _REFUSED:
                return {"failed": True, "text": self._said(error)}
            if error.code == types.REQUEST_TIMEOUT:
                problem = f"it did not answer within {self._timeout_seconds:g} s"
        except ServerAway:
            raise
        except Exception as error:
            problem = f"{problem} ({type(error).__name__})"
        else:
            if isinstance(result, types.CallToolResult):
                told = bounded_result(result, LONGEST_READ, self._hide)
                return {**told, "failed": True} if result.is_error else told
        raise ServerAway(problem, not_sent=not departure.begun)

    async def call(self, outgoing: OutgoingCall) -> Outcome:
        """Run a tool once, if it is still what was approved."""
        asked = json.loads(outgoing.payload)
        departure = Departure()
        try:
            async with asyncio.timeout(self.longest_request_seconds):
                await self._check(asked["tool"], outgoing.tool_digest)
                result = await self._once(asked["tool"], asked["arguments"], departure)
        except _NotAsApproved:
            problem = "the tool is not what it was when this was approved"
            return self._outcome(OutcomeKind.NOT_APPLIED, "never_left", problem=problem)
        except MCPError as error:
            return self._refused(error, departure)
        # Whatever else ends a call proves only how far it came, so the widest net is the honest
        # one; cancellation is no Exception and passes.
        except ValidationError:
            problem = "an answer that is no result"
            return self._outcome(OutcomeKind.UNKNOWN, "answer", problem=problem)
        except Exception as error:
            return self._lost(_problem(error), departure)
        return self._answered(result)

    async def close(self) -> None:
        """End every session, and every process with it."""
        await asyncio.gather(*(connection.close() for connection in self._connections))

    def _connection(self) -> Connection:
        """Return the session to use, or a new one that is opened when it is used."""
        self._connections = [c for c in self._connections if not c.closed]
        for connection in self._connections:
            if connection.usable:
                return connection
        self._connections.append(Connection(self.name, self._transport))
        return self._connections[-1]

    async def _list(self, connection: Connection) -> Sequence[ServedTool]:
        found: dict[str, ServedTool] = {}
        params = None
        try:
            async with (
                asyncio.timeout(CONNECT_SECONDS + LISTING_SECONDS),
                connection.session() as session,
            ):
                for _ in range(MOST_PAGES):
                    page = await session.list_tools(params=params)
                    for tool in filter(_can_be_named, page.tools):
                        found.setdefault(tool.name, _served(tool))
                    if page.next_cursor is None or len(found) >= MOST_TOOLS:
                        break
                    params = types.PaginatedRequestParams(cursor=page.next_cursor)
        except ServerAway:
            raise
        except Exception as error:
            # One that is silent may go on to be, for as long as it is the same process.
            connection.give_up()
            raise ServerAway(f"it does not say what it offers ({type(error).__name__})") from None
        self._away = None
        until = time.monotonic() + LISTING_LASTS_SECONDS
        tools = list(found.values())[:MOST_TOOLS]
        self._listed = (connection, until, tools)
        return tools

    async def _check(self, tool: str, digest: str) -> None:
        """Ask once more what the tool is; also, so that a session which is over is noticed."""
        try:
            tools = await self._list(self._connection())
        except ServerAway:
            tools = await self._list(self._connection())
        found = next((t for t in tools if t.name == tool), None)
        if found is None or found.digest() != digest:
            raise _NotAsApproved

    async def _once(
        self, tool: str, arguments: JsonObject, departure: Departure
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Make the one request; a session in which it was lost is not used again."""
        connection = self._connection()
        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        token = DEPARTURE.set(departure)
        try:
            async with connection.session() as session:
                return await session.send_request(
                    types.CallToolRequest(params=params),
                    _RESULT,
                    request_read_timeout_seconds=self._timeout_seconds,
                )
        except MCPError as error:
            if error.code not in _REFUSED:
                connection.give_up()
            raise
        except BaseException:
            connection.give_up()
            raise
        finally:
            DEPARTURE.reset(token)

    def _answered(self, result: types.CallToolResult | types.InputRequiredResult) -> Outcome:
        if not isinstance(result, types.CallToolResult):
            problem = "the tool asked for more instead of an end, and got nothing"
            return self._outcome(OutcomeKind.UNKNOWN, "answer", problem=problem)
        if result.is_error:
            said = bounded_result(result, _LONGEST_SAID, self._hide).get("text", "")
            problem = "the tool failed, which does not say what it had done by then"
            return self._outcome(OutcomeKind.UNKNOWN, "answer", problem=problem, answer=said)
        kept = bounded_result(result, LONGEST_KEPT, self._hide)
        return self._outcome(OutcomeKind.APPLIED, "result", result=kept)

    def _refused(self, error: MCPError, departure: Departure) -> Outcome:
        if departure.status in _TURNED_AWAY:
            return self._outcome(
                OutcomeKind.NOT_APPLIED,
                "turned_away",
                retryable=departure.status in _MAY_PASS,
                status=departure.status,
            )
        if departure.begun and error.code in _REFUSED:
            said = self._said(error)
            return self._outcome(OutcomeKind.NOT_APPLIED, "refused", code=error.code, answer=said)
        if error.code == types.REQUEST_TIMEOUT:
            return self._lost(f"no answer within {self._timeout_seconds:g} s", departure)
        if departure.lost or error.code == types.CONNECTION_CLOSED:
            return self._lost("the connection was lost", departure)
        if not departure.begun:
            return self._lost("the session was over", departure)
        problem, said = "an error that does not say what was done", self._said(error)
        return self._outcome(OutcomeKind.UNKNOWN, "answer", problem=problem, answer=said)

    def _lost(self, problem: str, departure: Departure) -> Outcome:
        if not departure.begun:
            return self._outcome(
                OutcomeKind.NOT_APPLIED, "never_left", retryable=True, problem=problem
            )
        phase = "response" if departure.left else "request"
        return self._outcome(OutcomeKind.UNKNOWN, phase, problem=problem)

    def _outcome(
        self, kind: OutcomeKind, phase: str, *, retryable: bool = False, **told: JsonValue
    ) -> Outcome:
        evidence = {"provider": provider_of(self.name), "phase": phase, **told}
        return Outcome(kind, evidence, retryable=retryable)

    def _said(self, error: MCPError) -> str:
        return self._hide(error.message)[:_LONGEST_SAID]


def _can_be_named(tool: types.Tool) -> bool:
    """Tell whether a tool has a name and a schema that can be written down.

    What is in a name is read as ours, by models and by people, so that no sentence may stand in it.
    """
    try:
        json.dumps(tool.input_schema, allow_nan=False)
    except ValueError:
        return False
    return _NAME.fullmatch(tool.name) is not None


def _served(tool: types.Tool) -> ServedTool:
    hint = tool.annotations.read_only_hint if tool.annotations else None
    parameters: dict[str, Any] = tool.input_schema
    return ServedTool(tool.name, tool.description or "", parameters, hint is True)


def _problem(error: Exception) -> str:
    """Say in our own words why a call ended; a library's words may hold what was sent."""
    if isinstance(error, ServerAway):
        return str(error)
    if isinstance(error, TimeoutError):
        return "it took too long"
    return f"no usable answer ({type(error).__name__})"
