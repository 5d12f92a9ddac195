"""Servers of tools that mean harm: each harms its own calls, and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from executor.adapters.tools import connection, mcp_server
from executor.adapters.tools.server_choice import McpServers
from executor.domain.effect import OutcomeKind
from executor.domain.policy_servers import ServerSection
from executor.engine.tool_port import ServerAway, ToolServer
from tests.support import hostile_mcp_server
from tests.support.http_mcp_server import listening
from tests.support.mcp_scene import done, outgoing, processes, reached

HOSTILE = hostile_mcp_server.__file__


def _hostile(servers: McpServers, log: Path, mood: str, **settings: Any) -> ToolServer:
    command = (sys.executable, "-I", "-S", HOSTILE, str(log), mood)
    return servers.named("hostile", ServerSection(command=command, **settings))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


async def test_of_odd_tools_only_those_are_offered_that_can_be_named(log: Path) -> None:
    async with reached() as servers:
        server = _hostile(servers, log, "odd")
        tools = await server.list_tools()
        assert [tool.name for tool in tools] == ["note", "propose_closing", "large"]
        assert tools[0].description == ""
        # A number of more than 53 bits is nothing odd.
        assert (await server.call(await outgoing(server, "large", {}))).kind is OutcomeKind.APPLIED


@pytest.mark.parametrize(
    ("mood", "kept"),
    [
        ("infinite", {"data": {"a": "inf", "b": ["nan"]}}),
        ("nested", {"text": "[" * 8_000, "cut": 92_003}),
        ("broken", {"text": "a\ufffdb"}),
    ],
)
async def test_a_result_that_no_record_can_hold_is_kept_as_far_as_it_goes(
    log: Path, mood: str, kept: dict[str, Any]
) -> None:
    async with reached() as servers:
        server = _hostile(servers, log, mood)
        outcome = await server.call(await outgoing(server, "note", {}))
        assert outcome.kind is OutcomeKind.APPLIED
        result: Any = outcome.evidence["result"]
        assert result == kept


async def test_a_server_that_does_not_say_what_it_offers_is_started_anew(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_server, "CONNECT_SECONDS", 1.0)
    monkeypatch.setattr(mcp_server, "LISTING_SECONDS", 0.5)
    monkeypatch.setattr(mcp_server, "AWAY_LASTS_SECONDS", 0.0)
    async with reached() as servers:
        server = _hostile(servers, log, "is silent at first")
        with pytest.raises(ServerAway, match="does not say"):
            await server.list_tools()
        assert await server.list_tools()
    assert len(processes(log)) == 2


async def test_a_server_that_asks_and_never_reads_costs_no_memory(log: Path) -> None:
    async with reached() as servers:
        server = _hostile(servers, log, "asks and never reads", timeout_seconds=1)
        await server.list_tools()
        asking = asyncio.create_task(server.read("note", {}))
        most = 0
        while not asking.done():
            most = max(most, len(asyncio.all_tasks()))
            await asyncio.wait({asking}, timeout=0.01)
        assert isinstance(asking.exception(), ServerAway)
        assert most < 200


async def test_whoever_is_told_to_end_gets_the_time_for_it(log: Path) -> None:
    async with reached() as servers:
        await _hostile(servers, log, "slow to end").list_tools()
    assert done(log) == ["put everything away"]


@pytest.mark.parametrize("mood", ["never greets", "leaves somebody behind"])
async def test_no_server_holds_up_the_end_of_its_worker(log: Path, mood: str) -> None:
    servers = McpServers({})
    listing = asyncio.create_task(_hostile(servers, log, mood).list_tools())
    if mood == "never greets":
        while not processes(log):  # noqa: ASYNC110 another process writes it
            await asyncio.sleep(0.01)
    else:
        await listing
    begun, open_before = time.monotonic(), len(os.listdir("/proc/self/fd"))
    try:
        await servers.close()
        assert time.monotonic() - begun < connection.CLOSE_SECONDS
        # Its three pipes and its leash are gone, whoever else holds them.
        assert len(os.listdir("/proc/self/fd")) <= open_before - 4
    finally:
        await asyncio.gather(listing, return_exceptions=True)
        for line in done(log):
            os.kill(int(line.removeprefix("left ")), signal.SIGKILL)


async def test_what_a_server_says_unasked_is_not_listened_to() -> None:
    async with listening() as there, reached() as servers:
        server = servers.named("web", ServerSection(url=there.url))
        assert await server.read("note", {}) == {"text": "done"}
    assert there.methods == {"POST"}


async def test_a_compressed_answer_is_not_unpacked() -> None:
    """It could unpack to any size."""
    async with listening(packed=True) as there, reached() as servers:
        server = servers.named("web", ServerSection(url=there.url))
        outcome = await server.call(await outgoing(server, "note", {}))
        assert (outcome.kind, outcome.evidence["phase"]) == (OutcomeKind.UNKNOWN, "answer")
        there.packed = False
        assert await server.read("note", {}) == {"text": "done"}
