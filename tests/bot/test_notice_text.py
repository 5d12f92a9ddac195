"""A stored answer becomes a sentence, and a late clicker is told who was first."""

from __future__ import annotations

import pytest

from bot import replies
from bot.notice_text import notice_text
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason
from tests.support.records import U_APP, U_APP2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            {"kind": "recorded", "vote": "approve", "votes": 1, "quorum": 2, "operation": 12},
            "Recorded: you approved op_12. It needs 1 more approval.",
        ),
        (
            {
                "kind": "recorded",
                "vote": "approve",
                "votes": 1,
                "quorum": 3,
                "operation": 13,
                "about": "reopen_ticket",
            },
            "Recorded: you said to open the ticket again (op_13). It needs 2 more approvals.",
        ),
        (
            {"kind": "recorded", "vote": "reject", "votes": 0, "quorum": 2, "operation": 12},
            "Recorded: you rejected op_12. Nothing will be sent, and the agent is told why.",
        ),
        (
            {
                "kind": "refused",
                "reason": "already_granted",
                "detail": {"by": [U_APP2, U_APP]},
                "operation": 12,
            },
            "op_12 was already approved by <@U_APP>.",
        ),
        (
            {
                "kind": "refused",
                "reason": "already_sending",
                "detail": {"by": [U_APP]},
                "operation": 12,
            },
            "op_12 was already approved by <@U_APP>.",
        ),
        (
            {
                "kind": "refused",
                "reason": "already_denied",
                "detail": {"by": [U_APP]},
                "operation": 12,
            },
            "op_12 was already rejected by <@U_APP>.",
        ),
        (
            {"kind": "refused", "reason": "expired", "detail": {"by": []}, "operation": 12},
            replies.sentence(Reason.EXPIRED, {}),
        ),
        (
            {"kind": "refused", "reason": "content_changed", "detail": {}, "operation": None},
            replies.sentence(Reason.CONTENT_CHANGED, {}),
        ),
        (
            {"kind": "unchanged", "reason": "already_voted", "operation": 12},
            replies.sentence(Reason.ALREADY_VOTED, {}),
        ),
        ({"kind": "of another release"}, replies.outdated_card()),
        ({}, replies.outdated_card()),
    ],
)
def test_every_answer_is_a_sentence(answer: JsonObject, said: str) -> None:
    assert notice_text(answer) == said


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_can_be_told(reason: Reason) -> None:
    answer: JsonObject = {
        "kind": "refused",
        "reason": reason.value,
        "detail": {"by": []},
        "operation": 1,
    }
    assert notice_text(answer).endswith(".")
