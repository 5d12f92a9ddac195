"""What a paused run promises: only what can come true."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from bot.card_pause import pause_items
from executor.domain.operation import OperationStatus
from executor.domain.raising import Scope
from tests.support.raising_records import pause_record

MIDNIGHT = "the next day's money lets it go on"
NEVER = "another policy has to allow more"
RAISED = "as soon as there is room"


@pytest.mark.parametrize(
    ("needed", "is_asked", "promise"),
    [
        (2_000_000, False, MIDNIGHT),
        (2_000_000, True, MIDNIGHT),
        (2_000_001, False, NEVER),
        (2_000_001, True, RAISED),
    ],
)
def test_a_call_that_no_whole_day_has_room_for_is_not_put_off_to_midnight(
    needed: int, is_asked: bool, promise: str
) -> None:
    asked = (14, OperationStatus.AWAITING) if is_asked else None
    pause = pause_record(Scope.DAY, needed_microusd=needed, asked=asked)
    told = json.dumps([asdict(item) for item in pause_items(pause)])
    assert [text for text in (MIDNIGHT, NEVER, RAISED) if text in told] == [promise]
