"""TM: money is held in one commit, the call is made, and it is charged with the record of its
reply.

An unrecorded call is made again only under a new reservation; the old one becomes ``unknown`` at
its deadline and stays counted. Locks: runs, reservations, run budgets, tenant-days, cards, journal
heads.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeVar

from executor.domain import budget
from executor.domain.budget import Account, Admitted, Charge, ReservationStatus
from executor.domain.ids import ReservationId, RunId, TenantId
from executor.domain.journal import Chain
from executor.domain.transition import Machine, Refused
from executor.engine.accept import lock_working_run
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.store import budgets, clock, journal, progress, tenants
from executor.store.budgets import Change
from executor.store.connection import Connection
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

KeyT = TypeVar("KeyT")


@dataclass(frozen=True, slots=True)
class Ask:
    """A wish to hold money for one call of a run that is held under ``epoch``."""

    run_key: tuple[TenantId, RunId]
    epoch: int
    purpose: str
    amount_microusd: int
    lasts_seconds: float


@dataclass(frozen=True, slots=True)
class Held:
    """Money is held for one call."""

    reservation_id: ReservationId


ReserveResult = Held | Refused


async def reserve(engine: Engine, asks: Sequence[Ask]) -> list[ReserveResult]:
    """Hold money before calls, folded in order where they share a run or a day; one commit.

    Opens its own transaction. A refusal names the limit, what was asked and what is left. Raises
    ``StaleEpoch`` when a run is no longer ours, ``CommitUnknown``: then what was held, if anything,
    becomes ``unknown`` at its deadline.
    """
    async with engine.committing(Commit.RESERVE) as conn:
        policies = await tenants.share_policies(conn, {a.run_key[0] for a in asks})
        for ask in sorted(asks, key=lambda a: (a.run_key[0], a.run_key[1].int)):
            await lock_working_run(conn, ask.run_key, ask.epoch)
        # The day is read before its lock is waited for, and once more after: midnight may pass.
        early = await clock.now(conn)
        limits = {}
        for tenant, policy in policies.items():
            for moment in (early, early + timedelta(minutes=1)):
                day = budget.budget_day(moment, policy.tenant.timezone)
                limits[tenant, day] = policy.budget.day_microusd
        run_accounts = await budgets.lock_run_budgets(conn, sorted({a.run_key for a in asks}))
        day_accounts = await budgets.lock_tenant_days(conn, limits)
        chain = await journal.lock_chain(conn, {a.run_key for a in asks})
        results: list[ReserveResult] = []
        new: list[budgets.NewReservation] = []
        for ask in asks:
            tenant = ask.run_key[0]
            day = budget.budget_day(chain.now, policies[tenant].tenant.timezone)
            results.append(_hold(engine, ask, day, run_accounts, day_accounts, new, chain))
        await budgets.insert(conn, new, chain.now)
        await _add(conn, new)
        await journal.advance(conn, chain)
    return results


def _hold(
    engine: Engine,
    ask: Ask,
    day: date,
    run_accounts: dict[budgets.RunKey, Account],
    day_accounts: dict[budgets.DayKey, Account],
    new: list[budgets.NewReservation],
    chain: Chain,
) -> ReserveResult:
    tenant, run_id = ask.run_key
    admitted = budget.reserve(
        run_accounts[ask.run_key], day_accounts[tenant, day], ask.amount_microusd
    )
    if not isinstance(admitted, Admitted):
        return admitted
    run_accounts[ask.run_key], day_accounts[tenant, day] = admitted.run, admitted.day
    id_ = ReservationId(engine.mint())
    entry = chain.birth(
        Machine.RESERVATION,
        tenant,
        run_id,
        id_,
        ReservationStatus.HELD,
        "executor",
        {"amount_microusd": ask.amount_microusd, "day": day.isoformat(), "purpose": ask.purpose},
    )
    deadline = chain.now + timedelta(seconds=ask.lasts_seconds)
    new.append(
        budgets.NewReservation(
            tenant, id_, run_id, day, ask.purpose, ask.amount_microusd, deadline, entry
        )
    )
    return Held(id_)


async def _add(conn: Connection, new: Sequence[budgets.NewReservation]) -> None:
    if not new:
        return
    by_run: dict[budgets.RunKey, Change] = {}
    by_day: dict[budgets.DayKey, Change] = {}
    for r in new:
        _grow(by_run, (r.tenant_id, r.run_id), 0, r.amount_microusd)
        _grow(by_day, (r.tenant_id, r.day), 0, r.amount_microusd)
    await budgets.add(conn, by_run, by_day)


@dataclass(frozen=True, slots=True)
class Locked:
    """Reservations with their accounts, locked in order, ready to be charged."""

    rows: Mapping[budgets.ReservationKey, budgets.ReservationRow]


async def lock_for_charge(conn: Connection, keys: Sequence[budgets.ReservationKey]) -> Locked:
    """Lock reservations and the accounts that they hold from; before the journal's heads."""
    rows = await budgets.lock(conn, sorted(keys, key=lambda key: (key[0], key[1].int)))
    await budgets.lock_run_budgets(conn, {(r.tenant_id, r.run_id) for r in rows.values()})
    await budgets.lock_tenant_days(conn, {(r.tenant_id, r.day): 0 for r in rows.values()})
    return Locked(rows)


async def charge(
    conn: Connection,
    locked: Locked,
    events: Mapping[budgets.ReservationKey, budget.Event],
    chain: Chain,
) -> None:
    """Settle, void or lose sight of locked reservations; a second settlement changes nothing."""
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
        entry = chain.move(
            Machine.RESERVATION,
            row.tenant_id,
            row.run_id,
            row.id,
            row.seq,
            decision.transition,
            "executor",
        )
        settled = decision.transition.target is ReservationStatus.SETTLED
        if settled and decision.spent_microusd > row.amount_microusd:
            _log.error(
                "reservation %s: %d micro-dollars were held, %d were spent and are charged",
                row.id,
                row.amount_microusd,
                decision.spent_microusd,
            )
        actual = decision.spent_microusd if settled else None
        moves.append(budgets.ReservationMove(row, decision.transition, actual, entry))
        spent, held = decision.spent_microusd, -decision.released_microusd
        _grow(by_run, (row.tenant_id, row.run_id), spent, held)
        _grow(by_day, (row.tenant_id, row.day), spent, held)
    await budgets.move(conn, moves)
    if moves:
        await budgets.add(conn, by_run, by_day)


async def charge_alone(
    engine: Engine,
    events: Mapping[budgets.ReservationKey, budget.Event],
) -> None:
    """Charge where there is no reply to record. Opens its own transaction."""
    async with engine.committing(Commit.EXPIRE) as conn:
        locked = await lock_for_charge(conn, list(events))
        subjects = {(r.tenant_id, r.run_id) for r in locked.rows.values()}
        await progress.want(conn, subjects)
        chain = await journal.lock_chain(conn, subjects)
        await charge(conn, locked, events, chain)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)


def _grow(accounts: dict[KeyT, Change], key: KeyT, spent: int, held: int) -> None:
    before = accounts.get(key, Change())
    accounts[key] = Change(before.spent + spent, before.held + held)
