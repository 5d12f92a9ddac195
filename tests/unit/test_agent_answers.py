"""What an agent is told fits, is literal, calls nobody, and is the same for people and programs."""

from __future__ import annotations

import json
import re
from uuid import UUID

import pytest
from hypothesis import given

from bot.agent_answers import result_of
from bot.cards import CardPainter, Drawing, card_environment
from bot.sandbox.blocks import validate_message
from executor.domain.ids import TenantId
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Refused
from executor.engine.card_record import CardRecord
from executor.engine.request_record import RequestedOperation, RequestedRun, RequestRecord
from tests.support.card_reading import nodes
from tests.support.hostile import texts
from tests.support.records import NONCE, operation_record, run_record

PAINTER = CardPainter(card_environment())
SUBJECT = UUID("0197f000-0000-7000-8000-00000000000b")
RUN = RequestedRun(7, RunStatus.WAITING, None)
NO_NAMES = re.compile(r"[ -~–—…⟦⟧]*")


def request(**changes: object) -> RequestRecord:
    known: dict[str, object] = {
        "tenant_id": TenantId("T1"),
        "id": SUBJECT,
        "kind": "close_ticket",
        "request_key": "ticket-4101/2",
        "refused": None,
        "again": False,
        "run": RUN,
        "operation": operation(),
    }
    return RequestRecord(**{**known, **changes})  # type: ignore[arg-type]


def operation(
    status: OperationStatus = OperationStatus.AWAITING,
    reason: Reason | None = None,
    note: str = "",
) -> RequestedOperation:
    return RequestedOperation("op_12", status, reason, note, edited=False)


def refused(reason: Reason, **detail: object) -> RequestRecord:
    return request(refused=Refused(reason, detail), run=None, operation=None)  # type: ignore[arg-type]


def draw(record: CardRecord) -> Drawing:
    return PAINTER.draw(record, render_no=1, nonce=NONCE)


def said(record: CardRecord) -> str:
    found = [n["text"] for n in nodes(draw(record).blocks) if isinstance(n.get("text"), str)]
    return " ".join(found)


RECORDS: list[CardRecord] = [
    *(refused(reason) for reason in Reason),
    *(request(operation=operation(status)) for status in OperationStatus),
    *(request(operation=operation(status), run=None) for status in OperationStatus),
    *(run_record(request=request(operation=operation(status))) for status in OperationStatus),
    *(request(kind="run", operation=None, run=RequestedRun(7, s, None)) for s in RunStatus),
    run_record(request=request(kind="run", operation=None)),
    request(again=True),
    request(request_key=None),
]


@pytest.mark.parametrize("record", RECORDS)
def test_every_answer_fits_and_calls_nobody(record: CardRecord) -> None:
    drawing = draw(record)
    assert validate_message(drawing.blocks) == []
    assert {n.get("type") for n in nodes(drawing.blocks)} & {"user", "usergroup", "mrkdwn"} == set()
    assert "<@" not in json.dumps(drawing.blocks)
    assert drawing.text.isascii()
    assert not drawing.approvable


@given(texts)
def test_what_others_wrote_is_literal_and_programs_get_none_of_it(words: str) -> None:
    records = (
        refused(Reason.ARGUMENTS_INVALID, problem=words),
        refused(Reason.CONTENT_INVALID, field=words, problem=words, remedy=words),
        refused(Reason.CONFLICTS_WITH, operation=words, status=words),
        refused(Reason.NOT_PERMITTED, missing=words),
        request(operation=operation(OperationStatus.REJECTED, note=words)),
    )
    for record in records:
        drawing = draw(record)
        for node in nodes(drawing.blocks):
            if node.get("type") == "rich_text_section":
                assert NO_NAMES.fullmatch("".join(e["text"] for e in node["elements"]))
        told = result_of(record)
        assert told is not None
        assert all(re.fullmatch(r"[a-z0-9_/-]+", str(value)) for value in told.values())


def test_programs_read_what_people_read() -> None:
    rejected = operation(OperationStatus.REJECTED, note="Say sorry.")
    assert result_of(request()) == {
        "request_key": "ticket-4101/2",
        "run": "run_7",
        "operation": "op_12",
        "status": "awaiting",
    }
    ended = run_record(request=request(operation=rejected))
    told = result_of(ended)
    assert told is not None
    assert told["status"] == "rejected"
    assert "The reviewer's reason: Say sorry." in said(ended)
    stale = refused(Reason.VERSION_CHANGED, version=9, ticket="4101", read=7)
    assert result_of(stale) == {
        "request_key": "ticket-4101/2",
        "status": "refused",
        "reason": "version_changed",
        "version": 9,
    }
    assert "9" in said(stale)


def test_cards_of_people_tell_programs_nothing() -> None:
    assert result_of(run_record()) is None
    assert result_of(operation_record()) is None


def test_a_card_says_that_an_agent_has_asked() -> None:
    record = operation_record()
    assert "(an agent)" not in said(record)
    assert "(an agent)" in said(operation_record(agents=frozenset({record.requester})))
    others = operation_record(agents=frozenset(record.linked_requesters))
    assert "(an agent)" not in said(others)
