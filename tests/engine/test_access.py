"""What a run may see: what its requester may ask about at that moment, and nothing beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from executor.domain.ids import PrincipalId, operator_principal
from executor.domain.payloads import JsonObject
from executor.domain.stamp import Stamp
from executor.domain.ticket import Ticket, TicketStatus
from executor.engine.converging import Answered
from executor.engine.desk_port import Observation
from executor.engine.granting import Given, Wish, give, take_back
from executor.engine.ports import ModelRequest, ToolCall
from executor.engine.setup import activate_policy
from executor.engine.tools import run_read_tool, unknown_tool
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import OTTO, RENE, RIKO, TENANT, Office, closing, policy
from tests.support.working import Working

ADA = operator_principal("ada")
ALL_TOOLS = ["search_tickets", "read_ticket", "propose_closing"]


async def let(office: Office, resource: str, role: str = "requester", **more: Any) -> int:
    """Give Otto, who has no role, a role on something."""
    given = await give(office.engine, TENANT, ADA, Wish(OTTO, role, resource=resource, **more))
    assert isinstance(given, Given), given
    return given.number


async def read(office: Office, ticket_id: str, who: PrincipalId = OTTO) -> JsonObject:
    call = ToolCall("call_0", "read_ticket", {"ticket_id": ticket_id})
    return await run_read_tool(office.database, TENANT, who, call, outside=office.desk)


async def found(office: Office, who: PrincipalId = OTTO) -> list[str]:
    call = ToolCall("call_0", "search_tickets", {"query": ""})
    result: Any = await run_read_tool(office.database, TENANT, who, call)
    return sorted(ticket["id"] for ticket in result["tickets"])


def is_unknown(result: JsonObject, ticket_id: str) -> bool:
    """Tell whether it is word for word what is said of a ticket that does not exist."""
    message = f"There is no ticket {ticket_id}. Search for it, or ask for its id."
    return result == {"error": "ticket_unknown", "message": message}


@pytest.mark.parametrize(
    ("resource", "seen"),
    [
        ("*", ["4101", "4102"]),
        ("kind:close_ticket", ["4101", "4102"]),
        ("kind:reopen_ticket", ["4101", "4102"]),
        ("desk:builtin", ["4101", "4102"]),
        ("ticket:builtin:4102", ["4102"]),
        ("ticket:builtin:9999", []),
        ("desk:zendesk:acme", []),
        ("ticket:zendesk:builtin:4101", []),
        ("kind:raise_budget", []),
    ],
)
async def test_a_run_sees_the_tickets_that_its_requester_may_ask_about(
    office: Office, resource: str, seen: list[str]
) -> None:
    await let(office, resource)
    assert await found(office) == seen
    for ticket_id in ("4101", "4102", "9999"):
        result = await read(office, ticket_id)
        assert is_unknown(result, ticket_id) is (ticket_id not in seen)


async def test_whoever_the_policy_lets_ask_sees_everything(office: Office) -> None:
    assert await found(office, RIKO) == ["4101", "4102"]
    assert (await read(office, "4101", RIKO))["id"] == "4101"


async def test_another_role_shows_nothing(office: Office) -> None:
    await let(office, "*", role="approver")
    assert await found(office) == []
    assert is_unknown(await read(office, "4101"), "4101")
    assert is_unknown(await read(office, "4101", RENE), "4101")


async def test_a_search_leaves_hidden_tickets_out_before_it_counts(office: Office) -> None:
    for number in range(4200, 4220):
        await office.import_ticket(str(number))
    await let(office, "ticket:builtin:4101")
    call = ToolCall("call_0", "search_tickets", {"query": "invoice"})
    result: Any = await run_read_tool(office.database, TENANT, OTTO, call)
    assert [ticket["id"] for ticket in result["tickets"]] == ["4101"]
    assert result["more"] is False


async def test_what_was_revoked_is_not_seen_any_more(office: Office) -> None:
    number = await let(office, "ticket:builtin:4101")
    assert (await read(office, "4101"))["id"] == "4101"
    await take_back(office.engine, TENANT, ADA, number)
    assert is_unknown(await read(office, "4101"), "4101")
    assert await found(office) == []


class SlowDesk:
    """An outside desk that has one ticket, and at which something happens while it is read."""

    name = "zendesk:acme"

    def __init__(self, ticket: Ticket, meanwhile: Callable[[], Any]) -> None:
        self.ticket, self.meanwhile, self.asked = ticket, meanwhile, list[str]()

    async def read(self, ticket_id: str) -> Observation | None:
        self.asked.append(ticket_id)
        await self.meanwhile()
        stamp = Stamp("2026-03-03T12:00:00Z", "")
        return Observation(self.ticket, stamp, ()) if ticket_id == self.ticket.id else None


def outside_ticket() -> Ticket:
    return Ticket(
        desk="zendesk:acme",
        id="77",
        version=1,
        status=TicketStatus.OPEN,
        subject="Invoice",
        customer_name="Pat",
        customer_email="pat@cust.example",
        language="en",
        times_opened=1,
        updated_at=datetime(2026, 3, 3, tzinfo=UTC),
    )


async def test_an_outside_ticket_is_hidden_alike_and_its_desk_is_not_even_asked(
    office: Office,
) -> None:
    async def nothing() -> None: ...

    desk = SlowDesk(outside_ticket(), nothing)
    office.desk = desk  # type: ignore[assignment]
    await let(office, "ticket:zendesk:acme:78")
    assert is_unknown(await read(office, "77"), "77")
    assert desk.asked == []
    assert is_unknown(await read(office, "78"), "78")
    await let(office, "ticket:zendesk:acme:77")
    assert (await read(office, "77"))["id"] == "77"
    # A desk that answers about another ticket than it was asked about shows nothing by that.
    desk.ticket = replace(desk.ticket, id="79")
    assert is_unknown(await read(office, "77"), "77")


async def test_a_right_that_ends_while_a_desk_is_read_hides_what_it_tells(office: Office) -> None:
    numbers: list[int] = []

    async def revoke() -> None:
        await take_back(office.engine, TENANT, ADA, numbers[0])

    office.desk = SlowDesk(outside_ticket(), revoke)  # type: ignore[assignment]
    numbers.append(await let(office, "desk:zendesk:acme"))
    assert is_unknown(await read(office, "77"), "77")


async def test_who_may_not_ask_is_not_told_whether_there_is_such_a_ticket(
    office: Office,
) -> None:
    await let(office, "ticket:builtin:4101")
    run_id = await office.start_run(requester=OTTO)
    claimed = await office.claim_run(run_id)
    answers = await office.ask(run_id, claimed, closing("4102"), closing("9999"))
    told = [answer.result for answer in answers if isinstance(answer, Answered)]
    assert told[0] == told[1]
    assert told[0]["error"] == "not_permitted"


def offered(request: ModelRequest) -> list[str]:
    return [tool.name for tool in request.tools]


async def test_only_tools_that_the_requester_could_use_are_offered(office: Office) -> None:
    model = FakeModel([says("Bye.")] * 2)
    await (await Working.start(office, model)).drive()
    assert offered(model.requests[0]) == ALL_TOOLS
    await let(office, "kind:reopen_ticket")
    await (await Working.start(office, model, requester=OTTO)).drive()
    assert offered(model.requests[1]) == ALL_TOOLS[:2]
    assert "propose_closing" not in model.requests[1].instructions


async def test_b199_hidden_and_made_up_tools_get_the_same_short_refusal(office: Office) -> None:
    await let(office, "kind:reopen_ticket")
    arguments = closing().model_dump(mode="json")
    model = FakeModel(
        [
            says(
                "",
                calls("propose_closing", arguments),
                calls("approve", {"operation": "op_1"}),
                calls("refund", {"amount": 900}),
            ),
            says("Nothing works."),
        ]
    )
    working = await Working.start(office, model, requester=OTTO)
    await working.drive()
    assert await working.told() == [dict(unknown_tool())] * 3
    assert await working.operations() == []


async def test_a_right_that_is_lost_in_mid_run_takes_the_tools_with_it(office: Office) -> None:
    number = await let(office, "ticket:builtin:4101")
    model = FakeModel(
        [
            says("", calls("read_ticket", {"ticket_id": "4101"})),
            says("", calls("read_ticket", {"ticket_id": "4101"})),
            says("I have nothing left."),
        ],
        held=True,
    )
    working = await Working.start(office, model, requester=OTTO)
    async with asyncio.TaskGroup() as group:
        group.create_task(working.drive())
        model.release()
        await model.wait_called(2)
        await take_back(office.engine, TENANT, ADA, number)
        model.release(2)
    assert [offered(request) for request in model.requests] == [ALL_TOOLS, ALL_TOOLS, []]
    read_first, refused = await working.told()
    assert read_first["id"] == "4101"
    assert refused == unknown_tool()
    assert "You have no tools" in model.requests[2].instructions


async def test_what_a_tenant_does_not_have_its_runs_do_not_see(office: Office) -> None:
    other = policy(slack={"team": "T0OTHER1", "channel": "C0OTHER"}, tenant={"name": "Other"})
    await activate_policy(office.engine, other)
    call = ToolCall("call_0", "search_tickets", {"query": ""})
    stranger = PrincipalId("slack:T0OTHER1:U0REQUESTER")
    result = await run_read_tool(office.database, other.tenant_id, stranger, call)
    assert result == {"tickets": [], "more": False}
    mine = await run_read_tool(office.database, TENANT, stranger, call)
    assert mine == {"tickets": [], "more": False}
