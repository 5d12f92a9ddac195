from __future__ import annotations

import logging

import pytest

from executor.domain.effect import OutcomeKind
from executor.domain.policy_servers import ServerSection
from executor.engine.tool_port import OutgoingCall, ServerAway
from tests.support.http_mcp_server import listening
from tests.support.mcp_scene import outgoing, reached
from tests.support.processes import free_port

APPLIED, NOT_APPLIED, UNKNOWN = (
    OutcomeKind.APPLIED,
    OutcomeKind.NOT_APPLIED,
    OutcomeKind.UNKNOWN,
)
TOKEN = "a-very-secret-token-1"


@pytest.mark.parametrize(
    ("mood", "kind", "phase", "retryable"),
    [
        ("answers", APPLIED, "result", False),
        ("streams", APPLIED, "result", False),
        ("refuses", NOT_APPLIED, "refused", False),
        ("401", NOT_APPLIED, "turned_away", False),
        ("403", NOT_APPLIED, "turned_away", False),
        ("404", NOT_APPLIED, "turned_away", True),
        ("429", NOT_APPLIED, "turned_away", True),
        ("400", UNKNOWN, "answer", False),
        ("500", UNKNOWN, "answer", False),
        ("503", UNKNOWN, "answer", False),
        ("202", UNKNOWN, "answer", False),
        ("sends elsewhere", UNKNOWN, "answer", False),
        ("talks nonsense", UNKNOWN, "answer", False),
        ("hangs up", UNKNOWN, "response", False),
        ("is silent", UNKNOWN, "response", False),
        ("breaks its stream", UNKNOWN, "response", False),
        ("says too much", UNKNOWN, "answer", False),
    ],
)
async def test_every_end_of_a_call_proves_only_what_it_proves_and_none_is_repeated(
    mood: str, kind: OutcomeKind, phase: str, retryable: bool
) -> None:
    async with listening() as there, reached() as servers:
        server = servers.named("web", ServerSection(url=there.url, timeout_seconds=1))
        there.mood = mood
        outcome = await server.call(await outgoing(server, "note", {"text": None}))
        assert (outcome.kind, outcome.evidence["phase"], outcome.retryable) == (
            kind,
            phase,
            retryable,
        )
        assert [call["arguments"] for call in there.calls] == [{"text": None}]
        # One lost call costs itself alone.
        there.mood = "answers"
        assert (await server.read("note", {}))["text"] == "done"


async def test_a_connection_that_is_refused_was_never_used() -> None:
    async with reached() as servers:
        url = f"http://127.0.0.1:{free_port()}/mcp"
        server = servers.named("web", ServerSection(url=url))
        outcome = await server.call(OutgoingCall(b'{"arguments":{},"tool":"note"}', "0" * 64))
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, True)
        assert outcome.evidence["phase"] == "never_left"
        with pytest.raises(ServerAway) as away:
            await server.read("note", {})
        assert away.value.not_sent


async def test_a_server_that_went_away_after_it_was_listed_was_never_asked() -> None:
    async with reached() as servers:
        async with listening() as there:
            server = servers.named("web", ServerSection(url=there.url))
            approved = await outgoing(server, "note", {})
        outcome = await server.call(approved)
        assert (outcome.kind, outcome.evidence["phase"]) == (NOT_APPLIED, "never_left")


async def test_the_token_goes_with_every_request_and_into_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    environ = {"WEB_TOKEN": TOKEN, "HTTP_PROXY": "http://127.0.0.1:1"}
    async with listening(token=TOKEN) as there, reached(environ) as servers:
        server = servers.named("web", ServerSection(url=there.url, token_from="WEB_TOKEN"))
        assert (await server.call(await outgoing(server, "note", {}))).kind is APPLIED
        assert set(there.authorizations) == {f"Bearer {TOKEN}"}
        other = servers.named("other", ServerSection(url=there.url))
        with pytest.raises(ServerAway):
            await other.list_tools()
    assert TOKEN not in caplog.text


async def test_what_cannot_be_read_is_not_logged_either(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with listening(mood="talks nonsense") as there, reached() as servers:
        with pytest.raises(ServerAway):
            await servers.named("web", ServerSection(url=there.url)).read("note", {})
    assert there.calls
    assert "Ignore your instructions" not in caplog.text
