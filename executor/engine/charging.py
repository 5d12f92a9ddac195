"""What was held is charged, once: to the actual where it is known, else it stays counted.

Locks: reservations, run budgets, tenant-days, cards, journal heads; a reply that is recorded with
its charge locks its run before them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from executor.domain import budget
from executor.domain.budget import Charge, LoseSight, ReservationStatus
from executor.domain.journal import Chain
from executor.domain.payloads import JsonObject
from executor.domain.transition import Machine
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.store import budgets, journal, model_calls, progress
from executor.store.budgets import Change, ReservationKey
from executor.store.connection import Connection
from executor.store.model_calls import CallEnd
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

KeyT = TypeVar("KeyT")


@dataclass(frozen=True, slots=True)
class Locked:
    """Reservations with their accounts, locked in order, ready to be charged."""

    rows: Mapping[ReservationKey, budgets.ReservationRow]


async def lock_for_charge(conn: Connection, keys: Sequence[ReservationKey]) -> Locked:
    """Lock reservations and the accounts that they hold from; before the journal's heads."""
    rows = await budgets.lock(conn, sorted(keys, key=lambda key: (key[0], key[1].int)))
    await budgets.lock_run_budgets(conn, {(r.tenant_id, r.run_id) for r in rows.values()})
    await budgets.lock_tenant_days(conn, {(r.tenant_id, r.day): 0 for r in rows.values()})
    return Locked(rows)


async def charge(
    conn: Connection,
    locked: Locked,
    events: Mapping[ReservationKey, budget.Event],
    chain: Chain,
    *,
    ends: Mapping[ReservationKey, CallEnd] | None = None,
    actor: str = "executor",
    told: JsonObject | None = None,
) -> None:
    """Settle, void or lose sight of locked reservations; a second settlement changes nothing.

    ``ends`` is how the calls ended that they were for; of one that is lost sight of nothing else is
    known. ``told`` is what the journal alone keeps.
    """
    moves: list[budgets.ReservationMove] = []
    by_run: dict[budgets.RunKey, Change] = {}
    by_day: dict[budgets.DayKey, Change] = {}
    for key, event in events.items():
        row = locked.rows.get(key)
        if row is None:
            continue
        decision = budget.decide(row.status, row.amount_microusd, event)
        if not isinstance(decision, Charge):
            continue
        moves.append(_move(row, decision, chain, actor, told or {}))
        change = Change(
            decision.spent_microusd, -decision.released_microusd, decision.unknown_microusd
        )
        grow(by_run, (row.tenant_id, row.run_id), change)
        grow(by_day, (row.tenant_id, row.day), change)
    await budgets.move(conn, moves)
    if moves:
        await budgets.add(conn, by_run, by_day)
    unseen = {key: model_calls.LOST for key, e in events.items() if isinstance(e, LoseSight)}
    await model_calls.end(conn, list({**unseen, **(ends or {})}.items()), chain.now)


def _move(
    row: budgets.ReservationRow, decision: Charge, chain: Chain, actor: str, told: JsonObject
) -> budgets.ReservationMove:
    kept = decision.transition
    kept = replace(kept, detail={**kept.detail, **told})
    entry = chain.move(Machine.RESERVATION, row.tenant_id, row.run_id, row.id, row.seq, kept, actor)
    settled = kept.target is ReservationStatus.SETTLED
    if settled and decision.spent_microusd > row.amount_microusd:
        _log.error(
            "reservation %s: %d micro-dollars were held, %d were spent and are charged",
            row.id,
            row.amount_microusd,
            decision.spent_microusd,
        )
    actual = decision.spent_microusd if settled else None
    return budgets.ReservationMove(row, decision.transition, actual, entry)


async def charge_alone(
    engine: Engine,
    events: Mapping[ReservationKey, budget.Event],
    ends: Mapping[ReservationKey, CallEnd] | None = None,
) -> None:
    """Charge where there is no reply to record. Opens its own transaction."""
    async with engine.committing(Commit.EXPIRE) as conn:
        locked = await lock_for_charge(conn, list(events))
        subjects = {(r.tenant_id, r.run_id) for r in locked.rows.values()}
        await progress.want(conn, subjects)
        chain = await journal.lock_chain(conn, subjects)
        await charge(conn, locked, events, chain, ends=ends)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)


def grow(accounts: dict[KeyT, Change], key: KeyT, by: Change) -> None:
    """Add one change to what changes in an account."""
    before = accounts.get(key, Change())
    accounts[key] = Change(
        before.spent + by.spent, before.held + by.held, before.unknown + by.unknown
    )
