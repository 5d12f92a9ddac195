"""The journal's chain: whatever is changed in it, by one byte or one row, is found where it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.domain.ids import RunId, TenantId
from executor.domain.journal import FIRST_HASH, Break, Chain, Head, JournalEntry, verify
from executor.domain.payloads import JsonValue
from executor.domain.run import RunStatus
from executor.domain.transition import Machine, Reason, Transition

TENANT, RUN = TenantId("T1"), RunId(UUID(int=7))
NOW = datetime(2026, 3, 2, 9, 30, 0, 123456, tzinfo=UTC)


def _chain(head: Head | None = None) -> Chain:
    return Chain(NOW, {(TENANT, RUN): head or Head()})


def _entries(count: int) -> tuple[list[tuple[JournalEntry, bytes]], Head]:
    chain = _chain()
    entries = [chain.birth(Machine.RUN, TENANT, RUN, RUN, RunStatus.QUEUED, "a", {"goal": "g"})]
    move = Transition(RunStatus.QUEUED, RunStatus.RUNNING, "claimed", Reason.COMPLETED, {"n": 1})
    entries.append(chain.move(Machine.RUN, TENANT, RUN, RUN, 1, move, "w"))
    while len(entries) < count:
        entries.append(chain.note(TENANT, RUN, RUN, "said", "p", {"n": len(entries), "t": "ü"}))
    head = chain.heads[TENANT, RUN]
    return [(entry, entry.hash) for entry in entries], head


def test_an_untouched_chain_holds_and_its_head_closes_it() -> None:
    entries, head = _entries(6)
    assert verify(entries) is None
    assert verify(entries, head) is None
    assert verify([], Head()) is None


CHANGES: dict[str, object] = {
    "tenant_id": TenantId("T2"),
    "subject": RunId(UUID(int=8)),
    "machine": Machine.OPERATION,
    "entity_id": UUID(int=9),
    "seq": 3,
    "source": "waiting",
    "target": "waiting",
    "event": "claimeD",
    "actor": "x",
    "detail": {"n": 2, "reason": "completed"},
    "recorded_at": NOW + timedelta(microseconds=1),
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_change_to_any_field_is_found_where_it_is(field: str) -> None:
    entries, head = _entries(5)
    entry, stored = entries[1]
    changed = replace(entry, **{field: CHANGES[field]})  # type: ignore[arg-type]
    entries[1] = (changed, stored)
    assert verify(entries, head) == Break(2, "its content was changed")
    entries[1] = (changed, changed.hash)
    assert verify(entries, head) == Break(3, "it does not follow the entry before it")


@given(st.integers(0, 4), st.integers(0, 31), st.integers(1, 255), st.booleans())
def test_one_changed_byte_of_a_hash_is_found(
    index: int, position: int, bits: int, previous: bool
) -> None:
    entries, head = _entries(5)
    entry, stored = entries[index]
    old = bytearray(entry.previous_hash if previous else stored)
    old[position] ^= bits
    entries[index] = (
        (replace(entry, previous_hash=bytes(old)), stored) if previous else (entry, bytes(old))
    )
    found = verify(entries, head)
    assert found is not None
    assert found.position == index + 1


@given(st.data())
def test_one_changed_character_of_a_detail_is_found(data: st.DataObject) -> None:
    text = data.draw(st.text(min_size=1, max_size=20))
    index = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters().filter(lambda c: c != text[index]))
    chain = _chain()
    entry = chain.note(TENANT, RUN, RUN, "said", "p", {"note": text})
    note = str(entry.detail["note"])
    changed: dict[str, JsonValue] = {"note": note[:index] + other + note[index + 1 :]}
    if changed == entry.detail or "\ud800" <= other <= "\udfff":
        return
    assert verify([(replace(entry, detail=changed), entry.hash)]) is not None


@pytest.mark.parametrize("index", range(5))
def test_a_removed_entry_is_found(index: int) -> None:
    entries, head = _entries(5)
    del entries[index]
    found = verify(entries, head)
    assert found is not None
    assert found.position == (4 if index == 4 else index + 2)


def test_entries_cut_off_at_the_end_are_found_by_the_head_alone() -> None:
    entries, head = _entries(5)
    assert verify(entries[:3]) is None
    assert verify(entries[:3], head) == Break(3, "the chain should end at 5")


def test_two_entries_in_the_wrong_order_are_found() -> None:
    entries, _ = _entries(5)
    entries[2], entries[3] = entries[3], entries[2]
    found = verify(entries)
    assert found is not None
    assert found.position == 4


def test_a_chain_goes_on_where_its_head_stood() -> None:
    first, head = _entries(3)
    chain = _chain(Head(head.position, head.hash))
    entry = chain.note(TENANT, RUN, RUN, "said", "p", {})
    assert (entry.position, entry.previous_hash) == (4, first[-1][1])
    assert verify([*first, (entry, entry.hash)], chain.heads[TENANT, RUN]) is None
    assert chain.grown == {(TENANT, RUN): 3}


def test_the_first_entry_follows_nothing() -> None:
    entries, _ = _entries(2)
    assert entries[0][0].previous_hash == FIRST_HASH
    assert entries[0][0].source == "born"


def test_a_time_is_the_same_moment_in_every_zone() -> None:
    [(entry, stored), *_], _ = _entries(2)
    zone = datetime.now(UTC).astimezone().tzinfo
    assert verify([(replace(entry, recorded_at=NOW.astimezone(zone)), stored)]) is None
