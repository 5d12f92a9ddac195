"""A card fits, is literal, and lets nobody approve what it does not show."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from bot.button_value import ButtonValue
from bot.card_compensation import verbs_of
from bot.cards import CardPainter, Drawing, button_value, card_environment
from bot.sandbox.blocks import validate_message, validate_view
from bot.settle_value import SettleValue
from bot.word_origin import WordOrigin
from executor.domain.closing_html import BODY_STYLE
from executor.engine.card_record import (
    OperationRecord,
    RunRecord,
)
from executor.engine.word import Said
from tests.support.card_reading import (
    action_ids,
    body,
    literals,
    nodes,
    outside_literals,
    part,
)
from tests.support.mails import mails
from tests.support.records import (
    NONCE,
    doubt_record,
    email_content,
    operation_record,
)
from tests.support.reopening_records import all_states as states
from tests.support.reopening_records import reopening_record

GOLDEN = Path(__file__).parent / "golden"
WRITE_GOLDEN = "WRITE_GOLDEN"

SETTLE = ["settle_sent", "settle_not_sent", "settle_send_again", "settle_leave"]

ALL: dict[str, OperationRecord | RunRecord] = {**states(), **mails()}

PAINTER = CardPainter(card_environment())


def draw(record: OperationRecord | RunRecord, render_no: int = 1, nonce: UUID = NONCE) -> Drawing:
    return PAINTER.draw(record, render_no=render_no, nonce=nonce)


def word_form(record: OperationRecord, said: Said) -> dict[str, Any]:
    assert record.doubt is not None
    value = SettleValue(record.id, record.doubt.attempt_id)
    return dict(PAINTER.draw_word_form(record, WordOrigin(said, value, "C1", "1.1")))


def view_of(record: OperationRecord) -> dict[str, Any]:
    return dict(PAINTER.draw_full_view(record, nonce=NONCE))


def drawn(name: str) -> dict[str, Any]:
    """Everything of a state's card that its golden file holds."""
    drawing = draw(ALL[name])
    return {
        "text": drawing.text,
        "approvable": drawing.approvable,
        "needs_full_view": drawing.needs_full_view,
        "blocks": drawing.blocks,
    }


def check_golden(name: str, found: dict[str, Any]) -> None:
    file = GOLDEN / f"{name}.json"
    if os.environ.get(WRITE_GOLDEN):
        file.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8")), f"read what changed in {file}"


@pytest.mark.parametrize("name", list(ALL))
def test_a_card_is_drawn_as_it_always_was(name: str) -> None:
    """Set WRITE_GOLDEN=1 to write the files anew, then read what changed in them."""
    found = drawn(name)
    assert validate_message(found["blocks"]) == []
    check_golden(name, found)


@pytest.mark.parametrize("name", list(mails()))
def test_a_full_view_is_drawn_as_it_always_was(name: str) -> None:
    record = ALL[name]
    assert isinstance(record, OperationRecord)
    view = view_of(record)
    assert validate_view(view) == []
    assert "submit" in view
    check_golden(f"{name}_in_full", view)


def test_every_golden_file_is_of_a_state_that_there_is() -> None:
    known = {*ALL, *(f"{name}_in_full" for name in mails())}
    assert {file.stem for file in GOLDEN.glob("*.json")} == known


@pytest.mark.parametrize("record", list(states().values()), ids=list(states()))
def test_every_state_fits_and_starts_with_its_status(record: OperationRecord | RunRecord) -> None:
    drawing = draw(record)
    assert validate_message(drawing.blocks) == []
    assert drawing.blocks[0]["type"] == "header"
    assert drawing.blocks[1]["type"] == "rich_text"
    if isinstance(record, OperationRecord):
        assert validate_view(view_of(record)) == []


def test_a_text_that_fits_no_view_cannot_be_approved_at_all() -> None:
    record = operation_record(email=email_content(text="日本" * 25_000))
    drawing = draw(record)
    view = view_of(record)
    assert action_ids(drawing.blocks) == ["review", "edit", "reject", "ask", "withdraw"]
    assert "submit" not in view
    assert "cannot be approved here" in json.dumps(view)
    assert validate_view(view) == []


def test_approve_is_there_exactly_while_it_would_count() -> None:
    actions = {name: action_ids(draw(record).blocks) for name, record in states().items()}
    moved = ["propose_again", "reject", "withdraw"]
    assert actions.pop("awaiting_but_ticket_moved") == moved
    assert actions.pop("approved") == ["withdraw"]
    assert actions.pop("stale") == ["propose_again"]
    assert actions.pop("awaiting_reopening_but_ticket_moved") == ["reject"]
    assert actions.pop("unknown_not_to_be_repeated") == [a for a in SETTLE if "again" not in a]
    assert actions.pop("tool_unknown") == SETTLE
    for asked in ("left", "half_sent_again", "after_the_key", "not_found", "whether_closed"):
        assert actions.pop(f"unknown_{asked}") == SETTLE
    for name, found in actions.items():
        by_itself = "reopening" in name or "raise" in name
        edit = [] if by_itself or "tool" in name else ["edit"]
        more = [] if by_itself else ["ask", "withdraw"]
        deciding = ["approve", *edit, "reject", *more]
        assert found == (deciding if name.startswith("awaiting") else []), name
    for name, record in states().items():
        drawing = draw(record)
        assert drawing.approvable == ("approve" in action_ids(drawing.blocks)), name


def test_the_full_view_of_what_was_decided_cannot_be_submitted() -> None:
    for name, record in states().items():
        if isinstance(record, OperationRecord):
            assert ("submit" in view_of(record)) == draw(record).approvable, name


def test_the_buttons_and_the_views_carry_the_same_reference() -> None:
    record = operation_record()
    values = {node["value"] for node in nodes(draw(record).blocks) if "value" in node}
    carried = button_value(record, NONCE).encode()
    assert values == {carried, record.id.hex}
    assert view_of(record)["private_metadata"] == carried
    value = ButtonValue.decode(carried)
    assert value is not None
    assert (value.operation, value.digest, value.nonce) == (record.id, record.digest, NONCE)
    reject = PAINTER.draw_reject_modal(value)
    assert validate_view(reject) == []
    assert reject["callback_id"] == "reject_reason"
    assert ButtonValue.decode(str(reject["private_metadata"])) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "[" * 5_000,
        '{"a":1,"o":1,"r":1,"d":1,"n":1}',
        button_value(operation_record(), NONCE).encode() + " ",
        button_value(operation_record(), NONCE).encode().replace('"r":1', '"r":true'),
        button_value(operation_record(), NONCE).encode().replace('"r":1', '"r":-1'),
        button_value(operation_record(), NONCE).encode().replace('"r":1', '"r":1,"x":1'),
        button_value(operation_record(), NONCE).encode().replace("ab", "AB"),
    ],
)
def test_a_value_that_we_did_not_write_is_refused(text: str) -> None:
    assert ButtonValue.decode(text) is None


def test_each_drawing_has_ids_of_its_own_and_equal_drawings_look_equal() -> None:
    record = operation_record()
    one, two = draw(record, 1), draw(record, 2, UUID(int=5))
    ids = [str(block["block_id"]) for block in (*one.blocks, *two.blocks)]
    assert len(set(ids)) == len(ids)
    assert all(record.id.hex in block_id and len(block_id) <= 255 for block_id in ids)
    assert one.view_digest == two.view_digest
    assert draw(states()["approved"]).view_digest != one.view_digest


def test_one_changed_character_changes_the_view_digest() -> None:
    one = draw(operation_record(email=email_content(text="900 EUR")))
    other = draw(operation_record(email=email_content(text="900\u200b EUR")))
    assert one.view_digest != other.view_digest


def test_both_forms_of_a_foreign_address_are_shown() -> None:
    shown = part(draw(states()["awaiting_foreign_address"]).blocks, "The email")
    assert '"Pat" <pat@bücher.example> = <pat@xn--bcher-kva.example>' in shown


def test_what_hides_is_named_with_its_count_above_the_email() -> None:
    shown = part(draw(states()["awaiting_foreign_address"]).blocks, "Warning")
    assert "1 × U+202E RIGHT-TO-LEFT OVERRIDE" in shown
    assert "p⟦U+0430⟧ypal.example = xn--pypal-4ve.example" in shown
    with pytest.raises(AssertionError):
        part(draw(operation_record()).blocks, "Warning")


def test_html_that_repeats_the_text_is_not_shown_again_and_other_html_is_shown_in_full() -> None:
    same = (
        '<!DOCTYPE html>\n<html lang="en" dir="ltr">\n<head><meta charset="utf-8"></head>\n'
        f'<body style="{BODY_STYLE}">\n<p>Hello Pat</p>\n</body>\n</html>\n'
    )
    derived = draw(operation_record(email=email_content(text="Hello Pat\n", html=same)))
    assert "by a fixed template" in json.dumps(derived.blocks)
    other = same.replace("Hello Pat", '<a href="https://evil.example">Hello Pat</a>')
    shown = draw(operation_record(email=email_content(text="Hello Pat\n", html=other)))
    assert body(shown.blocks, "HTML part") == other


def test_a_person_of_another_workspace_is_not_mentioned() -> None:
    record = operation_record(requester="slack:TEAM2:U_REQ")
    blocks = draw(record).blocks
    assert [n for n in nodes(blocks) if n.get("type") == "user"] == []
    assert "slack:TEAM2:U_REQ" in outside_literals(blocks)


def test_the_status_says_what_changed_while_the_approval_waited() -> None:
    shown = json.dumps(draw(states()["stale"]).blocks[1])
    assert "You looked at version 7; it is now 9." in shown
    assert literals([draw(states()["stale"]).blocks[1]]) == [
        "Pat:\nIt prints again, thanks!",
        "Kim:\nIt prints again, thanks!",
    ]
    assert status_text("stale").count("customer message, 2026-03-02 09:30 UTC:") == 2


def test_a_rejection_shows_its_reason_literally() -> None:
    blocks = draw(states()["rejected"]).blocks
    assert literals([blocks[1]]) == ["Too <curt>, say *sorry* first."]


def status_text(name: str) -> str:
    """What the status of a card says in our own words, as one text."""
    block = draw(states()[name]).blocks[1]
    words = [
        node.get("text") or node.get("fallback") or f"@{node['user_id']}"
        for section in nodes(block)
        if section.get("type") == "rich_text_section"
        for node in section["elements"]
    ]
    return "".join(words)


def test_an_unknown_outcome_never_claims_either_end() -> None:
    shown = status_text("unknown")
    assert "The email may have been sent." in shown
    assert "a person has to look" in shown
    assert "was sent" not in shown


def test_what_a_person_may_settle_says_where_it_was_lost_and_until_when_it_may_arrive() -> None:
    shown = status_text("unknown_left")
    assert "and then the provider's answer was lost. Late arrival is possible until" in shown
    assert "A person has to look." in shown
    assert "If it is sent once more and the first one arrives after all" in shown
    assert literals([draw(states()["unknown_left"]).blocks[1]])[:2] == [
        "through smtp:mail.acme.example:587, to pat@cust.example",
        "*Pat* is on holiday.",
    ]
    moved = status_text("unknown_not_to_be_repeated")
    assert "Nobody can have it sent once more. The ticket has changed since it was read." in moved
    assert "arrives after all" not in moved


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "unknown_until_sent_again_under_its_key",
            "Next: it is sent again under its key at 2026-03-02 09:32 UTC, and the provider drops",
        ),
        (
            "unknown_after_the_key",
            "If it is sent once more before 2026-03-03 09:30 UTC, the provider drops it",
        ),
        (
            "unknown_after_the_key",
            "No machine can find out: the provider may have forgotten the key.",
        ),
        (
            "unknown_until_searched",
            "Next: the provider is searched at 2026-03-02 09:39 UTC (search 3 of 6).",
        ),
        ("unknown_until_searched", "searched 2 times; the last search did not find it, which is"),
        (
            "unknown_not_found",
            "No machine can find out: 6 searches did not find it, which is no proof.",
        ),
        (
            "unknown_half_sent_again",
            "1 of 2 people said to send again so far: @U_APP. Until all of them have, it stays "
            "unknown; the others have time until 2026-03-03 09:30 UTC.",
        ),
        ("unknown_whether_closed", "Not known: it may have been closed."),
        ("unknown_whether_closed", "Find out whether it was closed, and say below what happened."),
        ("bounced", "Done: the email was accepted, then bounced."),
        ("bounced", "Accepted, then bounced at 2026-03-02 10:30 UTC. It was sent and came back;"),
        ("delivered", "Done. "),
        ("delivered", "Accepted, then delivered at 2026-03-02 10:30 UTC."),
    ],
)
def test_the_status_says_what_was_found_out_and_what_comes_next(name: str, words: str) -> None:
    assert words in status_text(name)


def test_what_a_provider_says_of_a_bounce_is_literal_and_no_failure() -> None:
    drawing = draw(states()["bounced"])
    assert "Permanent General <!channel>, pat@cust.example" in literals([drawing.blocks[1]])
    assert "ailed" not in status_text("bounced")
    assert drawing.text.endswith("done")


def test_the_words_buttons_name_the_attempt_that_is_shown_and_what_it_was() -> None:
    record = states()["unknown_left"]
    assert isinstance(record, OperationRecord)
    assert record.doubt is not None
    buttons = [n for n in nodes(draw(record).blocks) if n.get("type") == "button"]
    [value] = {button["value"] for button in buttons}
    assert SettleValue.decode(value) == SettleValue(record.id, record.doubt.attempt_id)
    assert [b["text"]["text"] for b in buttons] == [
        "It was sent",
        "It was not sent",
        "It was not sent: send again",
        "Leave it",
    ]
    closing = draw(states()["unknown_whether_closed"]).blocks
    labels = [n["text"]["text"] for n in nodes(closing) if n.get("type") == "button"]
    assert labels == [
        "It was closed",
        "It was not closed",
        "It was not closed: try again",
        "Leave it",
    ]


@pytest.mark.parametrize("said", list(Said))
@pytest.mark.parametrize("name", [n for n, r in states().items() if getattr(r, "doubt", None)])
def test_a_form_says_what_is_known_what_the_word_does_and_has_room_for_a_note(
    name: str, said: Said
) -> None:
    record = states()[name]
    assert isinstance(record, OperationRecord)
    assert record.doubt is not None
    form = word_form(record, said)
    assert validate_view(form) == []
    assert form["callback_id"] == "word"
    assert WordOrigin.decode(form["private_metadata"]) == WordOrigin(
        said, SettleValue(record.id, record.doubt.attempt_id), "C1", "1.1"
    )
    [note] = [block for block in form["blocks"] if block["type"] == "input"]
    assert note["optional"] is True
    shown = json.dumps(form["blocks"])
    assert "Late arrival is possible until" in shown
    assert ("you approve that exactly the same is tried" in shown) == (said is Said.SEND_AGAIN)
    assert ("digest ababab" in shown) == (said is Said.SEND_AGAIN)


def test_a_form_for_sending_again_counts_the_people_and_names_the_risk() -> None:
    half = states()["unknown_half_sent_again"]
    assert isinstance(half, OperationRecord)
    assert half.doubt is not None
    last = json.dumps(word_form(half, Said.SEND_AGAIN))
    assert "Yours is 2 of 2. " in last
    assert "the customer gets it twice" in last
    first = json.dumps(
        word_form(replace(half, doubt=replace(half.doubt, repeat=None)), Said.SEND_AGAIN)
    )
    assert "Yours is 1 of 2. " in first
    assert "it stays unknown and nothing is done" in first
    assert "ends with that" in json.dumps(word_form(half, Said.SENT))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[" * 150,
        '{"o":1,"t":1}',
        button_value(operation_record(), NONCE).encode(),
        SettleValue(operation_record().id, doubt_record().attempt_id).encode() + " ",
        SettleValue(operation_record().id, doubt_record().attempt_id).encode().upper(),
    ],
)
def test_a_words_value_that_we_did_not_write_is_refused(text: str) -> None:
    assert SettleValue.decode(text) is None


@pytest.mark.parametrize("text", ["", "{}", "[" * 150, '{"s":1,"v":1,"c":1,"t":1}'])
@pytest.mark.parametrize("change", [str, lambda good: good + " ", str.upper, lambda _: "null"])
def test_a_forms_origin_that_we_did_not_write_is_refused(text: str, change: Any) -> None:
    value = SettleValue(operation_record().id, doubt_record().attempt_id)
    good = WordOrigin(Said.SENT, value, "C1", "1.1").encode()
    assert WordOrigin.decode(good) is not None
    assert WordOrigin.decode(text) is None
    assert change is str or WordOrigin.decode(change(good)) is None
    assert WordOrigin.decode(good.replace('"sent"', '"approve"')) is None


def test_a_word_that_proof_contradicts_stays_on_the_card_as_contradicted() -> None:
    shown = json.dumps(draw(states()["contradicted"]).blocks[1])
    assert "said that it was not sent; the provider's proof says that it was." in shown
    assert "Contradicted" not in json.dumps(draw(states()["partial_by_word"]).blocks)


@pytest.mark.parametrize("name", ["approved", "executing"])
def test_a_card_that_waits_for_its_desk_says_so(name: str) -> None:
    record = states()[name]
    assert isinstance(record, OperationRecord)
    drawn = json.dumps(draw(replace(record, desk_problem="the desk answered 502")).blocks)
    assert "the ticket desk could not be read" in drawn
    assert "the desk answered 502" in drawn


def test_a_reopening_says_what_it_undoes_and_its_buttons_say_what_they_do() -> None:
    drawing = draw(reopening_record())
    buttons = [n for n in nodes(drawing.blocks) if n.get("type") == "button"]
    assert [(b["action_id"], b["text"]["text"]) for b in buttons] == [
        ("approve", "Reopen"),
        ("reject", "Leave it closed"),
    ]
    shown = json.dumps(drawing.blocks)
    assert "op_12 closed the ticket at version 8, and this email of it was not sent." in shown
    assert "pat@cust.example" in shown
    assert "The email, to" not in shown
    value = button_value(reopening_record(), NONCE)
    form = PAINTER.draw_reject_modal(value, verbs_of(reopening_record()))
    assert validate_view(form) == []
    assert form["title"]["text"] == "Leave it closed"  # type: ignore[index,call-overload]
