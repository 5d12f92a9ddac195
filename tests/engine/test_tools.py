"""The tools as the model sees them: bounded answers, helpful errors, no word on hidden tools."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.sandbox.tickets import sandbox_tickets
from executor.adapters.host_clock import SystemClock, mint_id
from executor.domain.closing import ProposeClosing
from executor.domain.ids import TenantId, slack_principal
from executor.domain.payloads import JsonObject
from executor.domain.ticket import BUILTIN_DESK, ChangeKind, Ticket, TicketChange, TicketStatus
from executor.engine import desk
from executor.engine.engine import Engine
from executor.engine.ports import ToolCall
from executor.engine.setup import activate_policy
from executor.engine.tools import (
    EFFECT_TOOLS,
    LONGEST_CONVERSATION,
    READ_TOOLS,
    TOOLS,
    bounded_ticket,
    parse_proposal,
    run_read_tool,
    unknown_tool,
)
from executor.store.database import Database
from tests.support.office import CHANNEL, policy

TENANT, OTHER = TenantId("T0TEAM1"), TenantId("T0OTHER1")


@pytest.fixture
async def stocked(database: Database) -> Database:
    engine = Engine(database, SystemClock(), mint_id)
    for tenant in (TENANT, OTHER):
        slack = {"team": tenant, "channel": CHANNEL}
        await activate_policy(engine, policy(slack=slack))
    await desk.import_tickets(database, TENANT, sandbox_tickets(datetime.now(UTC)))
    return database


async def run_tool(
    database: Database, tenant: TenantId, asked: ToolCall, **given: Any
) -> JsonObject:
    """Run it for somebody who may ask for everything there."""
    requester = slack_principal(tenant, "U0REQUESTER")
    return await run_read_tool(database, tenant, requester, asked, **given)


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("call_0", name, arguments)


def test_every_tool_is_a_read_or_an_effect_and_its_schema_names_the_arguments() -> None:
    assert {tool.name for tool in TOOLS} == READ_TOOLS | EFFECT_TOOLS
    schemas: dict[str, Any] = {tool.name: tool.parameters for tool in TOOLS}
    closing = schemas["propose_closing"]
    assert set(closing["properties"]) == set(ProposeClosing.model_fields)
    assert set(closing["required"]) == {
        name for name, field in ProposeClosing.model_fields.items() if field.is_required()
    }
    assert all(schema["additionalProperties"] is False for schema in schemas.values())


async def test_reading_a_ticket_gives_version_customer_and_conversation(stocked: Database) -> None:
    result: Any = await run_tool(stocked, TENANT, call("read_ticket", ticket_id=4101))
    assert (result["id"], result["version"], result["status"]) == ("4101", 7, "open")
    assert result["words_of_others"]["customer"]["email"] == "pat@cust.example"
    assert [entry["version"] for entry in result["words_of_others"]["conversation"]] == list(
        range(1, 8)
    )
    json.dumps(result)


async def test_searching_is_bounded_and_says_when_there_is_more(stocked: Database) -> None:
    result: Any = await run_tool(stocked, TENANT, call("search_tickets", query=""))
    assert len(result["tickets"]) == 10
    assert result["more"] is True
    found: Any = await run_tool(stocked, TENANT, call("search_tickets", query="INVOICE 2291"))
    assert [ticket["id"] for ticket in found["tickets"]] == ["4101"]
    assert found["more"] is False


async def test_another_tenants_tickets_do_not_exist(stocked: Database) -> None:
    other = OTHER
    found = await run_tool(stocked, other, call("search_tickets", query=""))
    assert found == {"tickets": [], "more": False}
    read = await run_tool(stocked, other, call("read_ticket", ticket_id="4101"))
    assert read["error"] == "ticket_unknown"


async def test_unknown_hidden_and_effect_tools_get_the_same_short_refusal(
    stocked: Database,
) -> None:
    refusals = [
        await run_tool(stocked, TENANT, call("refund", amount=1)),
        await run_tool(
            stocked, TENANT, call("read_ticket", ticket_id="4101"), visible={"search_tickets"}
        ),
        await run_tool(stocked, TENANT, call("propose_closing", ticket_id="4101")),
    ]
    assert refusals == [unknown_tool()] * 3
    spelled = json.dumps(unknown_tool())
    assert len(spelled) < 120
    assert not any(tool.name in spelled for tool in TOOLS)


@pytest.mark.parametrize(
    ("asked", "start"),
    [
        (call("read_ticket"), "ticket_id is missing"),
        (call("read_ticket", ticket_id=["4101"]), "ticket_id has the wrong type"),
        (call("read_ticket", ticket_id="4101", deep=True), "deep is not an argument"),
        (call("read_ticket", ticket_id="../4101\0"), "ticket_id cannot be used as it is"),
        (call("search_tickets", query=7), "query has the wrong type"),
        (call("search_tickets", query="x" * 501), "query is too long (the limit is 500)"),
    ],
)
async def test_wrong_arguments_are_answered_with_the_field_and_what_to_do(
    stocked: Database, asked: ToolCall, start: str
) -> None:
    result = await run_tool(stocked, TENANT, asked)
    assert result["error"] == "arguments_invalid"
    assert str(result["message"]).startswith(start)


async def test_a_query_that_no_text_can_match_is_answered_too(stocked: Database) -> None:
    unstorable = await run_tool(stocked, TENANT, call("search_tickets", query="a\0%_\\"))
    assert unstorable == {"tickets": [], "more": False}
    no_text = await run_tool(stocked, TENANT, call("search_tickets", query="a\ud800"))
    assert no_text["error"] == "arguments_invalid"


def test_a_proposal_is_parsed_or_answered_with_its_problem() -> None:
    arguments: JsonObject = {
        "ticket_id": 4101,
        "language": "en",
        "subject": "Closed",
        "message": "Bye.",
    }
    parsed = parse_proposal(ToolCall("call_0", "propose_closing", arguments))
    assert isinstance(parsed, ProposeClosing)
    refused = parse_proposal(ToolCall("call_0", "propose_closing", {**arguments, "to": "x"}))
    assert isinstance(refused, dict)
    assert refused["error"] == "arguments_invalid"


def test_an_endless_conversation_is_bounded_and_keeps_its_beginning_and_end() -> None:
    now = datetime(2026, 3, 3, tzinfo=UTC)
    changes = tuple(
        TicketChange(version, ChangeKind.CUSTOMER_MESSAGE, "Pat", f"{version}:" + "x" * 9_000, now)
        for version in range(1, 101)
    )
    ticket = Ticket(
        desk=BUILTIN_DESK,
        id="4101",
        version=100,
        status=TicketStatus.OPEN,
        subject="Long",
        customer_name="Pat",
        customer_email="pat@cust.example",
        language="en",
        times_opened=1,
        updated_at=now,
        changes=changes,
    )
    result: Any = bounded_ticket(ticket)
    versions = [entry["version"] for entry in result["words_of_others"]["conversation"]]
    assert versions == [1, *range(102 - len(versions), 101)]
    assert len(versions) + result["words_of_others"]["messages_left_out"] == 100
    assert result["words_of_others"]["conversation"][-1]["body"].startswith("100:")
    assert result["words_of_others"]["conversation"][-1]["body_characters_left_out"] == 5_004
    assert len(json.dumps(result)) < LONGEST_CONVERSATION + 5_000
    short: Any = bounded_ticket(replace(ticket, changes=changes[:2]))
    assert "messages_left_out" not in short["words_of_others"]
    assert [entry["version"] for entry in short["words_of_others"]["conversation"]] == [1, 2]
