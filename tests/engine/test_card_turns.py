"""Turns are given out once, at one pace for all processes, and only for this tenant's cards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import text

from executor.adapters.host_clock import mint_id
from executor.domain.ids import OperationId, TenantId
from executor.domain.pace import Pace
from executor.domain.turn import WORKSPACE
from executor.engine.card_turns import Delivery, DueCard, Family, Paces, Taken, due_cards, hold
from executor.engine.delivery_trouble import due_troubles, note_trouble, open_place, places_are_well
from executor.engine.presenting import (
    PostingOutcome,
    Shown,
    begin_posting,
    finish_drawing,
    give_up_posting,
    lose_place,
    present,
    put_off,
)
from executor.store.database import Database
from tests.support.clock import move_clock
from tests.support.office import CHANNEL, DELIVERY, TENANT, Office
from tests.support.waiting import another_pool

SECOND = timedelta(seconds=1)
SLOW = Pace(SECOND)
BRISK = Pace(SECOND, at_once=100)
PACED = replace(DELIVERY, paces=Paces(SLOW, BRISK, Pace(SECOND, at_once=3), SLOW, SLOW))
SHOWN = Shown(b"\0" * 32, [], 1)


async def take(office: Office, delivery: Delivery = PACED, most: int = 8) -> Taken:
    return await due_cards(office.engine, delivery, most)


async def taken(office: Office, delivery: Delivery = PACED, most: int = 8) -> list[OperationId]:
    return [OperationId(due.card.subject_id) for due in (await take(office, delivery, most)).cards]


async def proposed(office: Office, count: int) -> list[OperationId]:
    """Proposals whose cards nobody has posted yet, in the order of their numbers."""
    made = []
    for number in range(count):
        ticket = str(5000 + number)
        await office.import_ticket(ticket)
        run_id = await office.start_run(f"close {ticket}")
        made.append(await office.propose(run_id, await office.claim_run(run_id), ticket))
    await forget_runs(office)
    return made


async def forget_runs(office: Office) -> None:
    """Leave out what the runs themselves have to say."""
    async with office.database.transaction() as conn:
        await conn.execute(text("DELETE FROM cards WHERE subject_kind = 'run'"))


async def shown(office: Office, due: DueCard, ts: str = "1.1") -> None:
    nonce = mint_id()
    await begin_posting(office.engine, due.card, nonce, CHANNEL, SHOWN)
    await present(office.engine, due.card, nonce, channel=CHANNEL, ts=ts, shown=SHOWN)
    await finish_drawing(office.engine, due.card, SHOWN)


async def pass_time(office: Office, seconds: float) -> None:
    async with office.database.transaction() as conn:
        await move_clock(conn, timedelta(seconds=seconds))


async def rows(database: Database, statement: str, **binds: Any) -> Sequence[Any]:
    async with database.transaction() as conn:
        return (await conn.execute(text(statement), binds)).all()


async def test_two_processes_together_are_no_faster_than_one(
    office: Office, database_url: str
) -> None:
    first, second, _ = await proposed(office, 3)
    async with another_pool(database_url) as other:
        colleague = office.colleague(other)
        turns = await asyncio.gather(*(take(each) for each in (office, colleague) * 3))
        [due] = [due for turn in turns for due in turn.cards]
        assert due.card.subject_id == first
        await shown(office, due)
        await taken(colleague)  # the first card again, which says now until when
        assert [await taken(each) for each in (office, colleague)] == [[], []]
        await pass_time(office, 1)
        assert await taken(colleague) == [second]


async def test_a_hold_keeps_every_process_from_posting_until_it_is_over(office: Office) -> None:
    [only] = await proposed(office, 1)
    await hold(office.engine, PACED, Family.POST, WORKSPACE, 7)
    turn = await take(office.colleague())
    assert turn.cards == []
    assert turn.again_in is not None
    assert 6 < turn.again_in.total_seconds() <= 7
    await pass_time(office, 7)
    assert await taken(office) == [only]


async def test_one_on_its_way_keeps_those_behind_it_waiting_whatever_the_pace(
    office: Office,
) -> None:
    first, second = await proposed(office, 2)
    [due] = (await take(office)).cards
    await pass_time(office, 5)
    assert await taken(office) == [], "it may be there already"
    nonce = mint_id()
    await begin_posting(office.engine, due.card, nonce, CHANNEL, SHOWN)
    await put_off(office.engine, due.card, seconds=1, problem="timeout")
    await pass_time(office, 5)
    [sought] = (await take(office)).cards
    assert (sought.card.subject_id, sought.turn) == (first, None)
    assert sought.lost_posting is not None
    await give_up_posting(office.engine, sought.card, nonce, PostingOutcome.ABSENT)
    await put_off(office.engine, sought.card, seconds=0, problem=None)
    assert await taken(office) == [first]
    assert second not in await taken(office)


async def test_a_card_that_is_put_off_for_itself_lets_the_next_pass(office: Office) -> None:
    first, second = await proposed(office, 2)
    [due] = (await take(office)).cards
    await put_off(office.engine, due.card, seconds=30, problem="invalid_blocks")
    await pass_time(office, 1)
    assert await taken(office) == [second]
    await pass_time(office, 31)
    assert first in await taken(office)


async def test_what_has_no_turn_yet_says_when_it_will_have_one(office: Office) -> None:
    run_id = await office.start_run()
    operation = await office.propose(run_id, await office.claim_run(run_id))
    turn = await take(office)
    assert [due.card.subject_id for due in turn.cards] == [operation], "its run comes after it"
    assert turn.again_in is not None
    assert 0.9 < turn.again_in.total_seconds() <= 1
    await hold(office.engine, PACED, Family.POST, WORKSPACE, 7)
    await pass_time(office, 1)
    held = await take(office)
    assert held.again_in is not None
    assert held.again_in.total_seconds() > 5, "nobody looks again and again meanwhile"


async def test_what_was_decided_is_updated_before_anything_else(office: Office) -> None:
    waiting = [await office.proposed(), await office.proposed("4102")]
    await forget_runs(office)
    await office.click(waiting[1])
    [new] = await proposed(office, 1)
    async with office.database.transaction() as conn:
        await conn.execute(
            text("UPDATE cards SET due_at = signoff_clock() WHERE subject_id = :s"),
            {"s": waiting[0]},
        )
    assert await taken(office, most=1) == [waiting[1]]
    assert await taken(office, most=1) == [new]
    await pass_time(office, 1)
    assert await taken(office, most=1) == [waiting[0]]


async def test_many_changes_of_a_card_that_has_no_turn_come_to_one_drawing(office: Office) -> None:
    operation = await office.proposed()
    await forget_runs(office)
    await hold(office.engine, PACED, Family.UPDATE, WORKSPACE, 5)
    for _ in range(3):
        async with office.database.transaction() as conn:
            await conn.execute(
                text(
                    "UPDATE cards SET wanted_revision = wanted_revision + 1, "
                    "due_at = signoff_clock()"
                )
            )
    assert await taken(office) == []
    # The hold outlasts what decided cards may be ahead.
    await pass_time(office, 8)
    [due] = (await take(office)).cards
    await finish_drawing(office.engine, due.card, SHOWN)
    assert due.card.subject_id == operation
    assert await taken(office) == []


async def test_another_tenants_cards_are_none_of_ours(office: Office) -> None:
    await proposed(office, 1)
    assert await taken(office, replace(PACED, tenant_id=TenantId("T0OTHER"))) == []
    assert len(await taken(office)) == 1


async def test_a_closed_workspace_gives_no_turns_at_all(office: Office) -> None:
    await proposed(office, 1)
    await note_trouble(office.engine, TENANT, WORKSPACE, "token_revoked", lasting=True)
    assert await taken(office) == []
    await open_place(office.engine, TENANT, WORKSPACE)
    [due] = (await take(office)).cards
    assert due.troubles == {WORKSPACE}
    await places_are_well(office.engine, TENANT, due.troubles)
    assert await rows(office.database, "SELECT * FROM delivery_troubles") == []


async def test_a_closed_place_is_looked_at_ever_later_and_at_most_a_minute_apart(
    office: Office,
) -> None:
    waits = []
    await note_trouble(office.engine, TENANT, CHANNEL, "is_archived", lasting=True)
    for _ in range(9):
        [row] = await rows(
            office.database, "SELECT extract(epoch FROM look_at - noted_at) FROM delivery_troubles"
        )
        waits.append(round(float(row[0])))
        await pass_time(office, float(row[0]))
        [due] = await due_troubles(office.engine, TENANT, 8, [CHANNEL])
        assert await due_troubles(office.engine, TENANT, 8, [CHANNEL]) == [], "one look at a time"
        await note_trouble(office.engine, TENANT, due.place, due.problem, lasting=True)
    assert waits[0] == 1
    assert all(before <= after <= 2 * before + 2 for before, after in pairwise(waits)), waits
    assert waits[-2:] == [60, 60]


async def test_a_shown_card_is_drawn_again_after_its_time_even_if_nothing_changed(
    office: Office,
) -> None:
    operation = await office.proposed()
    await forget_runs(office)
    assert await taken(office) == []
    async with office.database.transaction() as conn:
        await conn.execute(text("UPDATE cards SET look_at = signoff_clock() + interval '10 min'"))
    await pass_time(office, 599)
    assert await taken(office) == []
    await pass_time(office, 1)
    assert await taken(office) == [operation]


async def test_a_card_whose_message_is_gone_keeps_the_time_until_it_can_be_decided(
    office: Office,
) -> None:
    operation = await office.proposed()
    await forget_runs(office)
    until = await decide_by(office, operation)
    async with office.database.transaction() as conn:
        await conn.execute(text("UPDATE cards SET due_at = signoff_clock()"))
    [due] = (await take(office)).cards
    await lose_place(office.engine, due.card, "message_not_found")
    [card] = await rows(office.database, "SELECT unseen_since, ts FROM cards")
    assert (card.unseen_since is None, card.ts) == (False, None)
    await pass_time(office, 100)
    await office.show()
    assert await decide_by(office, operation) == until
    [card] = await rows(office.database, "SELECT unseen_since, ts FROM cards")
    assert (card.unseen_since, card.ts is None) == (None, False)


async def decide_by(office: Office, operation: OperationId) -> str:
    query = "SELECT decide_by FROM approvals WHERE tenant_id = :t AND operation_id = :id"
    return await office.value(query, operation)
