"""How a run's message tells of tools of servers, whose names a model writes before we know them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.card_progress import progress_lines
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.transition import Reason
from executor.engine.progress_record import ToolStep
from tests.support.progress_records import at, way
from tests.support.records import run_record


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "Called billing.find"),
        ({"is_answered": False}, "Calls a tool of a server"),
        ({"refused": Reason.TOOL_UNKNOWN}, "Asked for a tool that does not exist"),
        ({"refused": Reason.SERVER_AWAY}, "Tried to call billing.find"),
        (
            {"is_answered": False, "operation": (12, OperationStatus.AWAITING)},
            "Proposed to call billing.find: op_12, waiting for a decision",
        ),
    ],
)
def test_a_tool_of_a_server_is_named_once_it_is_known(changes: dict[str, Any], told: str) -> None:
    step = replace(ToolStep("billing__find", at(1), "", True), **changes)
    [line, *_] = progress_lines(run_record(status=RunStatus.RUNNING, progress=way(step))).shown
    assert line.said == told
