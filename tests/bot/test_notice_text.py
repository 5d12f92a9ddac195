"""A stored answer becomes a sentence, and a late clicker is told who was first."""

from __future__ import annotations

import pytest

from bot import replies
from bot.notice_text import notice_text
from bot.reason_text import sentence
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason
from tests.support.records import U_APP, U_APP2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            {"kind": "recorded", "vote": "approve", "still_needed": 1, "operation": 12},
            "Recorded: you approved op_12. It needs 1 more approval.",
        ),
        (
            {
                "kind": "recorded",
                "vote": "approve",
                "still_needed": 2,
                "operation": 13,
                "about": "reopen_ticket",
            },
            "Recorded: you said to open the ticket again (op_13). It needs 2 more approvals.",
        ),
        (
            {"kind": "recorded", "vote": "reject", "still_needed": 2, "operation": 12},
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
            sentence(Reason.EXPIRED, {}),
        ),
        (
            {"kind": "refused", "reason": "content_changed", "detail": {}, "operation": None},
            sentence(Reason.CONTENT_CHANGED, {}),
        ),
        (
            {"kind": "unchanged", "reason": "already_voted", "operation": 12},
            sentence(Reason.ALREADY_VOTED, {}),
        ),
        (
            {"kind": "recorded", "vote": "reject", "operation": 12, "stopped": 7, "sending": []},
            "Recorded: you rejected op_12. run_7 was stopped with it, and nothing more of it is "
            "sent.",
        ),
        (
            {"kind": "recorded", "vote": "reject", "operation": 12, "stopped": 7, "sending": [13]},
            "Recorded: you rejected op_12. run_7 was stopped with it, but op_13 is being sent "
            "already and cannot be called back. Its card will show how it ended.",
        ),
        (
            {"kind": "unchanged", "reason": "already_voted", "operation": 12, "goes_on": 7},
            f"{sentence(Reason.ALREADY_VOTED, {})} run_7 was not stopped; "
            "`/signoff cancel run_7` stops it.",
        ),
        (
            {"kind": "refused", "reason": "expired", "detail": {}, "operation": 12, "goes_on": 7},
            f"{sentence(Reason.EXPIRED, {})} run_7 was not stopped; "
            "`/signoff cancel run_7` stops it.",
        ),
        (
            {"kind": "asked", "left": 4, "operation": 12},
            "Recorded: your question about op_12 goes to the agent. It answers in the card's "
            "thread; deciding need not wait for it.",
        ),
        (
            {"kind": "withdrawn", "operation": 12},
            "Recorded: op_12 is withdrawn. Nothing of it was done.",
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
