"""An exported journal: whatever is changed in its file is found, in the line where it is."""

from __future__ import annotations

import json
import re
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.domain import audit_rules
from executor.domain.approval import ApprovalStatus
from executor.domain.audit import Broken, Whole, audit
from executor.domain.audit_file import Unusable, read_entry, read_header
from executor.domain.ids import RunId
from executor.domain.journal import tenant_subject
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject, canonical
from executor.domain.transition import Machine
from executor.engine.word import WORD_GIVEN, Said
from tests.support.audit_sample import (
    ATTEMPT,
    OPERATION,
    TENANT,
    Part,
    Writer,
    identifier,
    rechained,
    sample,
)

LINES = sample()
RUN_1 = RunId(identifier(1, 0))
FIRST_OF_RUN_1 = 4
"""The line at which the first run's chain begins: after the header and the tenant's own two."""


def broken_at(lines: list[bytes]) -> int:
    """Return the line that is named as broken, also where it is no header any more."""
    try:
        found = audit(BytesIO(b"".join(lines)))
    except Unusable:
        return 1
    assert isinstance(found, Broken), found
    return found.line


def problem(lines: list[bytes]) -> str:
    found = audit(lines)
    assert isinstance(found, Broken), found
    return found.problem


def test_an_untouched_export_is_whole() -> None:
    found = audit(LINES)
    assert isinstance(found, Whole)
    assert found.entries == len(LINES) - 1 == 28
    assert [end.run for end in found.header.chains] == [None, 1, 2]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(LINES) - 1), st.data())
def test_one_changed_byte_is_found_in_its_line(index: int, data: st.DataObject) -> None:
    line = bytearray(LINES[index])
    line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    assert broken_at([*LINES[:index], bytes(line), *LINES[index + 1 :]]) == index + 1


def test_every_byte_of_one_line_is_covered() -> None:
    index = FIRST_OF_RUN_1 + 4
    for place in range(len(LINES[index])):
        line = bytearray(LINES[index])
        line[place] ^= 1
        assert broken_at([*LINES[:index], bytes(line), *LINES[index + 1 :]]) == index + 1, place


@pytest.mark.parametrize("index", range(1, len(LINES)))
def test_a_removed_line_is_found_where_it_is_missing(index: int) -> None:
    removed = [*LINES[:index], *LINES[index + 1 :]]
    assert broken_at(removed) == index + 1
    assert re.search("entry [0-9]+ is missing before it|entries .* are missing", problem(removed))


@pytest.mark.parametrize("index", range(1, len(LINES) - 1))
def test_two_lines_in_the_wrong_order_are_found(index: int) -> None:
    swapped = [*LINES[:index], LINES[index + 1], LINES[index], *LINES[index + 2 :]]
    assert broken_at(swapped) == index + 1


@pytest.mark.parametrize("index", range(len(LINES)))
def test_a_line_that_stands_there_twice_is_found(index: int) -> None:
    twice = [*LINES[: index + 1], *LINES[index:]]
    assert broken_at(twice) == index + 2
    if index > 0:
        assert re.search("[0-9]+ once more|it is one too many", problem(twice))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, len(LINES) - 1), st.integers(1, len(LINES)))
def test_a_line_from_elsewhere_in_the_file_is_found(line: int, into: int) -> None:
    assert broken_at([*LINES[:into], LINES[line], *LINES[into:]]) in (into + 1, into + 2)


def test_what_is_missing_at_an_end_is_told_with_its_subject_and_position() -> None:
    found = audit(LINES[:-2])
    assert isinstance(found, Broken)
    assert (found.line, found.subject, found.position) == (28, RunId(identifier(2, 0)), 12)
    assert "entries 12 to 13" in found.problem
    at_a_seam = [*LINES[: FIRST_OF_RUN_1 + 11], *LINES[FIRST_OF_RUN_1 + 12 :]]
    found = audit(at_a_seam)
    assert isinstance(found, Broken)
    assert (found.line, found.subject, found.position) == (16, RUN_1, 13)
    assert "another chain begins, and entries 13 to 13" in found.problem
    assert "entries 1 to 13 of" in problem(LINES[: FIRST_OF_RUN_1 + 12])


def test_a_row_of_another_tenant_is_found() -> None:
    writer = Writer()
    run = writer.run(1)
    lines = [writer.header().line(), *rechained(writer.listed[run], 0, tenant_id="T2")]
    assert problem(lines) == "it is of another tenant"


def test_a_forged_chain_is_found_at_the_stored_head() -> None:
    writer = Writer()
    run = writer.run(1)
    lines = [writer.header().line(), *rechained(writer.listed[run], 5, actor="slack:T1:EVE")]
    # Whoever voted is not asked for; that the head is another one is.
    found = audit(lines)
    assert isinstance(found, Broken)
    assert (found.line, found.position) == (14, 13)
    assert "stored head" in found.problem


def test_a_changed_entry_whose_own_hash_fits_is_found_at_the_next() -> None:
    writer = Writer()
    run = writer.run(1)
    listed = writer.listed[run]
    forged = rechained(listed, 5, actor="slack:T1:EVE")[5]
    whole = writer.lines()
    found = audit([*whole[:6], forged, *whole[7:]])
    assert isinstance(found, Broken)
    assert (found.line, found.position) == (8, 7)
    assert "does not follow the entry before it" in found.problem


def test_a_header_that_was_written_anew_has_another_fingerprint() -> None:
    changed = json.loads(LINES[0]) | {"tenant_id": "T2"}
    assert "sha256" in problem([canonical(changed) + b"\n", *LINES[1:]])
    writer = Writer()
    writer.run(1)
    assert writer.header().fingerprint != read_header(LINES[0]).fingerprint


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"", "empty"),
        (b"\x1f\x8b\x00", "cut off"),
        (b"[1]\n", "no JSON object"),
        (b"[" * 100_000 + b"\n", "no JSON"),
        (b'{"format":"other"}\n', "format"),
        (LINES[0].replace(b'"version":1', b'"version":2'), "version 1"),
        (LINES[1], "format"),
    ],
)
def test_what_is_no_export_is_not_usable(first: bytes, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        audit([first] if first else [])


LACKING: dict[str, str] = {
    "run born": "the first entry of a run is not its birth",
    "operation born": "the effect is of an operation that was not born before",
    "effect born": "the attempt is at an effect that was not born before",
    "approval born": "it is a vote on an approval that was not opened before",
    "voted": "the approval is granted by 0 vote(s), and it takes 1",
    "approval granted": "the operation is approved, and no approval of it was granted",
    "operation approved": "the approval is used up, and its operation stood at 'awaiting'",
    "approval consumed": "the attempt is made, and no granted approval of its operation was used",
    "operation executing": "move 3 of operation",
    "approval consumed, attempt born": "the effect happens, and no granted approval of its",
    "approval consumed, attempt born, effect dispatched": "the operation is opened, and no granted",
}


@pytest.mark.parametrize("leave_out", LACKING)
def test_what_rests_on_something_is_not_believed_without_it(leave_out: str) -> None:
    writer = Writer()
    writer.run(1, leave_out=leave_out.split(", "))
    assert LACKING[leave_out] in problem(writer.lines())


OTHER = "f" * 64
INSTEAD: dict[str, tuple[str, JsonObject, str]] = {
    "another digest": ("vote", {"vote": "approve", "digest": OTHER}, "another digest"),
    "no digest": ("vote", {"vote": "approve"}, "another digest"),
    "no vote": ("vote", {"vote": "perhaps", "digest": f"{1:064x}"}, "neither approve nor reject"),
    "a no": ("vote", {"vote": "reject", "digest": f"{1:064x}"}, "granted by 0 vote(s)"),
    "a birth without content": ("operation", {"revision": 1}, "without the digest"),
    "another operation": (
        "approval", {"operation": str(identifier(2, 1)), "quorum": 1}, "not born before",
    ),
    "two votes": (
        "approval", {"operation": str(identifier(1, 1)), "quorum": 2}, "1 vote(s), and it takes 2",
    ),
    "another effect": ("attempt", {"effect": str(identifier(2, 3))}, "not born before"),
}  # fmt: skip


@pytest.mark.parametrize("case", INSTEAD)
def test_what_is_bound_to_something_else_is_not_believed(case: str) -> None:
    what, detail, why = INSTEAD[case]
    writer = Writer()
    writer.run(1, instead={what: detail})
    assert why in problem(writer.lines())


@pytest.mark.parametrize(
    ("leave_out", "why"),
    [
        ((), None),
        (("word_given",), "without the words that it takes"),
        (("operation executing",), "its operation stood at 'unknown'"),
    ],
)
def test_a_repeat_takes_the_words_of_people_on_the_attempt(
    leave_out: tuple[str, ...], why: str | None
) -> None:
    writer = Writer()
    run = writer.run(1, leave_out=["operation succeeded"])
    part = Part(writer, run, 1, leave_out)
    executing, unknown = OperationStatus.EXECUTING, OperationStatus.UNKNOWN
    part.move(Machine.OPERATION, OPERATION, 3, executing, unknown)
    told = {"operation": str(identifier(1, OPERATION)), "repeats": str(identifier(1, ATTEMPT))}
    part.born(Machine.APPROVAL, 9, ApprovalStatus.OPEN, {**told, "quorum": 1})
    part.move(Machine.APPROVAL, 9, 1, ApprovalStatus.OPEN, ApprovalStatus.GRANTED)
    part.note(ATTEMPT, "word_given", {"said": "send_again"})
    part.move(Machine.OPERATION, OPERATION, 4, unknown, executing)
    part.move(Machine.APPROVAL, 9, 2, ApprovalStatus.GRANTED, ApprovalStatus.CONSUMED)
    if why is None:
        assert isinstance(audit(writer.lines()), Whole)
    else:
        assert why in problem(writer.lines())


CHANGES: dict[str, tuple[int, dict[str, object], str]] = {
    "no edge": (11, {"target": "partial"}, "cannot move from 'approved' to 'partial'"),
    "another source": (1, {"source": "paused"}, "leaves 'paused', and it stood at 'queued'"),
    "a no that nobody said": (6, {"target": "denied"}, "who did it has not voted to reject"),
    "a rejection alone": (7, {"target": "rejected"}, "no approval of it was denied"),
    "a skipped number": (1, {"seq": 3}, "move 2 of run"),
    "a birth in the middle": (7, {"entity_id": identifier(9, 9)}, "move 1 of operation"),
    "a note that moves": (5, {"target": "granted"}, "it is a note, and moves something"),
    "half a move": (1, {"source": None}, "without its number or its ends"),
    "nobody's vote": (5, {"actor": ""}, "it is nobody's vote"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_move_that_no_machine_makes_is_found_though_every_hash_fits(case: str) -> None:
    index, fields, why = CHANGES[case]
    writer = Writer()
    run = writer.run(1)
    found = audit([writer.header().line(), *rechained(writer.listed[run], index, **fields)])
    assert isinstance(found, Broken)
    assert (found.line, found.position) == (index + 2, index + 1)
    assert why in found.problem


def test_the_rules_know_every_machine_and_the_words_of_the_journal() -> None:
    assert set(audit_rules.EDGES) == set(Machine)
    assert (WORD_GIVEN, Said.SEND_AGAIN.value) == (audit_rules.WORD_GIVEN, audit_rules.SEND_AGAIN)


def test_a_line_holds_exactly_what_is_hashed_and_its_two_hashes() -> None:
    entry, stored = read_entry(LINES[1])
    assert entry.subject == tenant_subject(TENANT)
    assert json.loads(LINES[1]) == {
        **entry.content(),
        "previous_hash": entry.previous_hash.hex(),
        "hash": stored.hex(),
    }
