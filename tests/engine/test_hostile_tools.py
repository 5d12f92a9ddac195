"""What servers say of their tools, and secrets on their way to them."""

from __future__ import annotations

from typing import Any

import pytest

from executor.domain.policy_servers import ServerSection
from executor.domain.secret_text import HIDDEN
from executor.domain.transition import Reason
from executor.engine.outside_tools import (
    LONGEST_DESCRIPTION,
    LONGEST_OF_ALL,
    MOST_OFFERED,
    OutsideTool,
    OutsideTools,
)
from executor.engine.ports import ToolSpec
from executor.engine.setup import activate_policy
from executor.engine.tool_port import ServedTool
from executor.store.database import Database
from tests.support.fake_model import calls, says
from tests.support.fake_tools import FakeServer, FakeServers, tool
from tests.support.office import Office, policy
from tests.support.tool_scene import ToolScene

BILLING = ServerSection(command=("billing",))
ANYTHING = {"type": "object"}


def _specs(*parameters: dict[str, Any], description: str = "") -> tuple[ToolSpec, ...]:
    tools = {
        f"billing__t{n}": OutsideTool(
            f"billing__t{n}", "billing", ServedTool(f"t{n}", description, taken), BILLING
        )
        for n, taken in enumerate(parameters)
    }
    return OutsideTools(tools).specs()


@pytest.mark.parametrize(
    "more",
    [
        {"type": "string"},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"oneOf": []},
        {"properties": {"a name with spaces": {}}},
        {"properties": {"x" * 65: {}}},
        {"properties": ["a"]},
        {"description": "x" * 10_000},
    ],
    ids=lambda more: next(iter(more)),
)
def test_a_schema_that_providers_of_models_refuse_is_not_passed_on(more: dict[str, Any]) -> None:
    [spec] = _specs({"type": "object", **more})
    assert spec.parameters == ANYTHING


def test_a_plain_schema_is_passed_on_as_it_is() -> None:
    plain = {"type": "object", "properties": {"a.b-c_1": {"anyOf": [{"maximum": 2**64}]}}}
    [spec] = _specs(plain)
    assert spec.parameters == plain


def test_all_tools_together_cost_no_more_than_can_be_paid_with_every_call() -> None:
    large = {"type": "object", "description": "x" * 7_000}
    specs = _specs(*[large] * MOST_OFFERED, description="y" * 5_000)
    assert specs[0].parameters == large
    assert specs[-1].parameters == ANYTHING
    said = sum(len(spec.description) + len(str(spec.parameters)) for spec in specs)
    assert said < LONGEST_OF_ALL + MOST_OFFERED * (LONGEST_DESCRIPTION + 300)


@pytest.mark.parametrize("secret", [HIDDEN, "xoxb-1234567890-abcdefghij"])
async def test_no_secret_and_no_trace_of_one_goes_to_a_tool_that_reads(
    database: Database, secret: str
) -> None:
    office = await Office.open(database)
    server = FakeServer("billing", [tool("find")])
    office.tools = FakeServers(server)
    lent = {"billing": {"command": ["billing"], "reads": ["find"]}}
    await activate_policy(office.engine, policy(servers=lent))
    [told] = await ToolScene(office).told(
        says("", calls("billing__find", {"id": [{"key": secret}]})), says("Done.")
    )
    assert told["error"] == Reason.ARGUMENTS_INVALID
    assert server.reads == []
