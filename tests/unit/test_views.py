"""What people see beside the cards: the Home tab, the list of what waits, forms and answers.

Golden files hold what is drawn; set WRITE_GOLDEN=1 to write them anew, then read what changed.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from bot.ask_origin import AskOrigin
from bot.button_value import ButtonValue
from bot.card_question import asked_about
from bot.card_votes import votes_of
from bot.cards import CardPainter, button_value, card_environment
from bot.home import MOST_OF_EACH, home_view, refused_home
from bot.pending_list import MOST_LISTED, pending_text
from bot.sandbox.blocks import validate_message, validate_view
from bot.view_origin import ViewOrigin
from executor.domain.approval import Vote
from executor.domain.grant import Resource
from executor.domain.ids import OperationId, TenantId, slack_principal
from executor.domain.intent import CLOSE_TICKET, REOPEN_TICKET
from executor.domain.run import RunStatus
from executor.domain.terms import Requirement
from executor.domain.transition import Reason
from executor.engine.approval_record import VoteRecord
from executor.engine.card_record import OperationRecord
from executor.engine.home import Home, InDoubt, OwnRun
from executor.engine.pending import Pending, PendingLine
from executor.engine.question_record import QuestionRecord
from tests.support.card_reading import literals, nodes, outside_literals
from tests.support.records import NONCE, operation_record

GOLDEN = Path(__file__).parent / "golden_views"
NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
TENANT = TenantId("TSIGNOFF")
RIKO, RENE, SAM = (slack_principal(TENANT, f"U0{who}") for who in ("RIKO", "RENE", "SAM"))
HOSTILE = "<!channel> *bold* `code`\u202e https://evil.example|x"
PAINTER = CardPainter(card_environment())


def _pending(count: int, more: int) -> Pending:
    lines = tuple(
        PendingLine(
            OperationId(UUID(int=number)),
            number,
            REOPEN_TICKET if number == 2 else CLOSE_TICKET,
            "builtin",
            f"41{number:02}",
            RIKO,
            NOW - timedelta(minutes=5 * number),
            NOW + timedelta(hours=number),
        )
        for number in range(1, count + 1)
    )
    return Pending(NOW, lines, more)


def _home(count: int, more: int) -> Home:
    runs = tuple(
        OwnRun(number, RunStatus.WAITING, HOSTILE, NOW - timedelta(days=number), (number, 90))
        for number in range(1, count + 1)
    )
    doubts = tuple(
        InDoubt(
            OperationId(UUID(int=number)),
            number,
            Resource(CLOSE_TICKET, "builtin", "4109"),
            NOW - timedelta(hours=number),
            NOW + timedelta(minutes=5) if number == 2 else None,
            (Requirement("approval", 1, ("role:approver", "U0SAM", "group:S0LEGAL")),),
            number == 1,
        )
        for number in range(1, count + 1)
    )
    return Home(TENANT, _pending(count, more), runs, more, doubts, more)


def question(
    number: int = 1, answer: str | None = HOSTILE, why: Reason | None = None
) -> QuestionRecord:
    return QuestionRecord(
        TENANT, UUID(int=number), 12, RENE, NOW, f"{number}: {HOSTILE}", answer, why
    )


def asked(*questions: QuestionRecord) -> OperationRecord:
    return replace(operation_record(), questions=questions)


def voted(
    *votes: VoteRecord, lacking: tuple[Requirement, ...] | None, quorum: int = 2
) -> OperationRecord:
    record = operation_record()
    usual = Requirement("approval", quorum, ("role:approver",))
    legal = Requirement("legal", 1, ("role:legal", "U0SAM"))
    terms = replace(record.approval.terms, requirements=(usual, legal))
    approval = replace(record.approval, votes=votes, terms=terms, lacking=lacking)
    return replace(record, approval=approval)


RENES_VOTE = VoteRecord(RENE, Vote.APPROVE, "", NOW, on_behalf_of=RIKO)


def views() -> dict[str, Any]:
    value = button_value(operation_record(), NONCE)
    closed = question(answer=None, why=Reason.QUESTION_OVERTAKEN)
    return {
        "home": PAINTER.draw_home(home_view(_home(3, 0), "Cancelled run_7.")),
        "home_empty": PAINTER.draw_home(home_view(_home(0, 0))),
        "home_refused": PAINTER.draw_home(refused_home("Slack says that guests may not act here.")),
        "pending": PAINTER.draw_pending(_pending(2, 0), TENANT),
        "ask": PAINTER.draw_ask_form(operation_record(), AskOrigin(OperationId(NONCE), "C1")),
        "reject": PAINTER.draw_reject_modal(value),
        "answer": PAINTER.draw(question(), render_no=1, nonce=NONCE).blocks,
        "not_answered": PAINTER.draw(closed, render_no=1, nonce=NONCE).blocks,
        "card_asked": PAINTER.draw(
            asked(question(1), question(2, None), question(3, None, Reason.BUDGET_LIMIT)),
            render_no=1,
            nonce=NONCE,
        ).blocks[1:2],
        "card_voted": PAINTER.draw(
            voted(RENES_VOTE, lacking=(Requirement("legal", 1, ("role:legal", "U0SAM")),)),
            render_no=1,
            nonce=NONCE,
        ).blocks[1:2],
    }


@pytest.mark.parametrize("name", list(views()))
def test_a_view_is_drawn_as_it_always_was(name: str) -> None:
    found = json.loads(json.dumps(views()[name]))
    problems = validate_message(found) if isinstance(found, list) else validate_view(found)
    assert problems == []
    file = GOLDEN / f"{name}.json"
    if os.environ.get("WRITE_GOLDEN"):
        file.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8")), f"read what changed in {file}"


def test_every_golden_view_is_one_that_there_is() -> None:
    assert {file.stem for file in GOLDEN.glob("*.json")} == set(views())


def test_a_full_home_tab_fits_is_literal_and_says_what_is_left_out() -> None:
    found: Any = PAINTER.draw_home(home_view(_home(MOST_OF_EACH, 5), "x" * 900))
    assert validate_view(found) == []
    assert len(found["blocks"]) <= 100
    text = json.dumps(found, ensure_ascii=False)
    for words in (
        "5 more wait after these. /signoff pending lists more of them.",
        "5 older ones are not listed here.",
        "More is in doubt than is listed here.",
    ):
        assert words in text
    assert "\u202e" not in text
    assert [n["text"] for n in nodes(found) if "<!channel>" in str(n.get("text"))] == [
        HOSTILE.replace("\u202e", "⟦U+202E⟧")
    ] * MOST_OF_EACH


def _line(number: int) -> PendingLine:
    return PendingLine(
        OperationId(UUID(int=number)),
        number,
        CLOSE_TICKET,
        "builtin",
        f"41{number:02}<@U0X>*\u202e",
        RIKO,
        NOW - timedelta(hours=2),
        NOW + timedelta(minutes=90),
    )


def test_a_long_list_is_bounded_fits_a_message_and_says_what_is_left_out() -> None:
    lines = tuple(_line(number) for number in range(1, MOST_LISTED + 1))
    many = Pending(NOW, lines, more=7, is_all=False)
    blocks: Any = CardPainter(card_environment()).draw_pending(many, TENANT)
    assert validate_message(blocks) == []
    text = json.dumps(blocks, ensure_ascii=False)
    assert "27 decisions wait for you" in text
    assert "7 more wait after these." in text
    assert "only the most urgent was looked at" in text
    assert "2 h ago" in text
    assert "in 1 h." in text
    assert "\u202e" not in text
    assert [n["value"] for n in nodes(blocks) if n.get("type") == "button"] == [
        UUID(int=number).hex for number in range(1, MOST_LISTED + 1)
    ]
    assert "4101" not in pending_text(many), "what others wrote stands in no text"


@pytest.mark.parametrize("name", list(views()))
def test_what_others_wrote_stands_in_literal_text_alone(name: str) -> None:
    found = views()[name]
    assert "evil.example" not in outside_literals(found)
    assert "\u202e" not in json.dumps(found, ensure_ascii=False)


def test_a_card_shows_the_newest_questions_and_how_many_there_were() -> None:
    record = asked(*(question(number) for number in range(1, 6)))
    blocks = PAINTER.draw(record, render_no=1, nonce=NONCE).blocks
    shown = [text for text in literals(blocks) if "evil.example" in text]
    assert [text.partition(":")[0] for text in shown] == ["4", "5"]
    assert "(3 asked before)" in json.dumps(blocks)
    assert asked_about(operation_record()) == ()


def test_a_very_long_question_and_answer_fit_into_their_messages() -> None:
    long = replace(question(answer="日本語 " * 5_000), question="Why? " * 2_000)
    assert validate_message(PAINTER.draw(long, render_no=1, nonce=NONCE).blocks) == []
    record = asked(long, long, long)
    drawing = PAINTER.draw(record, render_no=1, nonce=NONCE)
    assert validate_message(drawing.blocks) == []
    assert drawing.approvable


def _told(record: OperationRecord) -> str:
    return json.dumps([str(item) for item in votes_of(record)])


def test_whose_votes_are_needed_is_said_where_one_approval_is_not_enough() -> None:
    assert votes_of(operation_record()) == ()
    told = _told(voted(lacking=None))
    assert "3 approvals needed: 2 of the approvers, one of role legal or U0SAM." in told
    rest = (Requirement("approval", 1, ("role:approver",)),)
    told = _told(voted(RENES_VOTE, lacking=rest))
    assert "1 more approval needed: one of the approvers." in told
    assert "U0RENE" in told
    assert "U0RIKO" in told, "it counts as the vote of whoever passed the right on"
    assert "the next vote decides it" in _told(voted(RENES_VOTE, lacking=()))


@pytest.mark.parametrize("modal", [None, NONCE])
@pytest.mark.parametrize("at_home", [True, False])
def test_what_a_modal_carries_back_is_read_as_it_was_written(
    modal: UUID | None, at_home: bool
) -> None:
    value = button_value(operation_record(), NONCE)
    origin = ViewOrigin(value, "C1", "1.2", modal, at_home)
    assert ViewOrigin.decode(origin.encode()) == origin
    assert len(origin.encode()) < 600


@pytest.mark.parametrize("field", ["m", "h", "c"])
def test_what_no_modal_carries_is_not_read(field: str) -> None:
    value: ButtonValue = button_value(operation_record(), NONCE)
    carried = json.loads(ViewOrigin(value, "C1", "1.2").encode())
    for wrong in ("2", 1, None, "x" * 33, "\u202e"):
        if field == "c" and wrong in ("2", "x" * 33):
            continue
        assert ViewOrigin.decode(json.dumps({**carried, field: wrong})) is None
    assert AskOrigin.decode(json.dumps({"o": "7", "c": "C1"})) is None
    asked = AskOrigin(OperationId(NONCE), "C1")
    assert AskOrigin.decode(asked.encode()) == asked
