"""A run is paused at a limit of the budget, and goes on when there is room for its next call.

It costs rows and nothing else meanwhile. Whoever frees room makes it due: a raise that was applied,
a charge that is known now, the next day, another policy. A slow look behind them finds what they
missed. A run whose limit is not raised ends; one that waits for a day's money goes on with the next
day. Locks: policies, runs, operations, run budgets, tenant-days, cards, journal heads.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from enum import Enum, auto

from executor.domain import budget, run
from executor.domain.budget import Account, Admitted
from executor.domain.errors import DuplicateKey, ExecutorError, StaleEpoch
from executor.domain.ids import OperationId, RunId, TenantId
from executor.domain.journal import Chain
from executor.domain.operation import UNOPENED, OperationStatus, RunEnded
from executor.domain.policy import Policy
from executor.domain.raising import Limit, Raising, Scope, raised_limit
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Refused, Transition
from executor.engine import endings
from executor.engine.endings import Locked, RunKey
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.leases import Keeper
from executor.engine.purse import Purse
from executor.engine.raising import ask_for_more, join
from executor.store import clock, journal, operations, pauses, progress, runs, tenants
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow
from executor.store.pauses import Pause, Waiting
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

AT_ONCE = 100
LOOK_AGAIN = timedelta(seconds=60)
"""How long nobody looks again at one paused run whom nothing has woken."""

_TRIES = 3


class Paused(Enum):
    """What came of a call for which there was no room."""

    PAUSED = auto()
    ROOM = auto()
    """There is room by now: the run goes on."""
    NO_RAISE = auto()
    """Nobody could let this run cost more: it has to end."""


async def pause(engine: Engine, key: RunKey, keeper: Keeper, refused: Refused) -> Paused:
    """Pause a run whose next call was refused, and ask people for more, in one commit.

    Opens its own transactions. Raises ``StaleEpoch`` when the run is no longer ours.
    """
    asked = refused.detail["asked_microusd"]
    assert isinstance(asked, int)
    for _ in range(_TRIES):
        try:
            result = await _pause(engine, key, keeper, asked)
        except DuplicateKey:
            # Another run that is paused at the same limit has just asked for the same.
            continue
        engine.ring(Kind.CARDS)
        return result
    return Paused.ROOM


async def _pause(engine: Engine, key: RunKey, keeper: Keeper, needed: int) -> Paused:
    tenant = key[0]
    async with engine.committing(Commit.PAUSE) as conn:
        policy = (await tenants.share_policies(conn, [tenant]))[tenant]
        of_days = f"raise:{Scope.DAY.value}:"
        live = await pauses.unopened_raises(
            conn, tenant, [f"raise:{Scope.RUN.value}:{key[1]}:", of_days]
        )
        rows = await runs.lock(conn, {key, *live.values()})
        row = rows.get(key)
        if row is None or row.status is not RunStatus.RUNNING or row.lease_epoch != keeper.epoch:
            raise StaleEpoch(keeper.epoch, -1 if row is None else row.lease_epoch)
        raises = await operations.lock(conn, live)
        purse = await Purse.lock(conn, {tenant: policy}, [key])
        chain = await endings.lock_cards_and_chain(conn, list(raises.values()), runs_too=[key])
        today = budget.budget_day(chain.now, policy.tenant.timezone)
        of_run, of_day = purse.runs[key], purse.days[tenant, today]
        refused = budget.reserve(of_run, of_day, needed)
        if isinstance(refused, Admitted):
            return Paused.ROOM
        scope = Scope(str(refused.detail["limit"]))
        account = of_run if scope is Scope.RUN else of_day
        limit = Limit(Scope.RUN, run_id=row.id, run=row.number)
        renews_at = None
        if scope is Scope.DAY:
            limit = Limit(Scope.DAY, day=today, timezone=policy.tenant.timezone)
            renewed = budget.renewal(today, policy.tenant.timezone)
            renews_at = datetime.fromisoformat(str(renewed["renews_at"]))
        raise_id, not_raised = await _raise(
            conn, engine, chain, policy, row, limit, account, needed, raises.values()
        )
        if raise_id is None and scope is Scope.RUN:
            return Paused.NO_RAISE
        paused = run.decide(row.status, run.MustPause(Reason.BUDGET_LIMIT, refused.detail))
        assert isinstance(paused, Transition)
        await endings.move_run(conn, row, paused, keeper.owner, chain, due_at=renews_at)
        why = Pause(key, scope, limit.day, needed, renews_at, raise_id, not_raised)
        await pauses.record(conn, why, chain.now, chain.now + LOOK_AGAIN)
        await journal.advance(conn, chain)
    return Paused.PAUSED


async def _raise(
    conn: Connection,
    engine: Engine,
    chain: Chain,
    policy: Policy,
    row: runs.RunRow,
    limit: Limit,
    account: Account,
    needed: int,
    raises: Collection[OperationRow],
) -> tuple[OperationId | None, OperationStatus | None]:
    """Join the raise that is asked for already, or ask; else say what stands in the way."""
    intent_key = limit.key(account.limit_microusd, policy)
    for other in raises:
        if other.intent_key == intent_key and other.status in UNOPENED:
            await join(conn, chain, other, row.requester)
            return other.id, None
    if await pauses.rejected(conn, row.tenant_id, intent_key):
        return None, OperationStatus.REJECTED
    to = raised_limit(policy, limit.scope, account, needed)
    if to is None:
        return None, None
    raising = Raising(
        limit,
        account.limit_microusd,
        to,
        account.spent_microusd,
        account.held_microusd,
        account.unknown_microusd,
        needed,
    )
    return await ask_for_more(conn, engine, chain, policy, raising, row.requester), None


async def conclude_raises(
    conn: Connection, locked: Locked, waiting: Sequence[Waiting], chain: Chain
) -> None:
    """Let paused runs go on, or end, whose raise has ended; everything of them is locked.

    Whoever waited before the locks may have gone on meanwhile, and wait for another raise by now.
    """
    ended: dict[RunKey, OperationStatus | None] = {}
    going_on: list[RunKey] = []
    raises = {(one.key[0], one.raise_id) for one in waiting}
    for one in await pauses.waiting_for(conn, raises):
        row, asked = locked.runs.get(one.key), locked.operations.get((one.key[0], one.raise_id))
        if row is None or asked is None or row.status is not RunStatus.PAUSED:
            continue
        match asked.status:
            case OperationStatus.AWAITING | OperationStatus.APPROVED | OperationStatus.EXECUTING:
                continue
            case OperationStatus.SUCCEEDED | OperationStatus.STALE:
                # Out of date is what it is because the limit has moved: the run looks again.
                ended[one.key] = None
                going_on.append(one.key)
            case _ if one.scope is Scope.RUN:
                said = await pauses.last_words(conn, one.key)
                await endings.stop_locked(
                    conn, locked, row, Reason.BUDGET_NOT_RAISED, "executor", chain, said
                )
            case _:
                ended[one.key] = asked.status
    await pauses.end_raises(conn, ended)
    await progress.want(conn, ended)
    await runs.make_due(conn, going_on, chain.now)


async def resume(engine: Engine, tenant: TenantId, only: Sequence[RunId] | None = None) -> int:
    """Make those paused runs due that have room for their next call now; returns how many.

    Called after whatever may have freed room was committed. Opens its own transaction. Two at once
    do no harm: who finds no room after all is paused again.
    """
    async with engine.committing(Commit.RESUME) as conn:
        policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
        if policy is None:
            return 0
        now = await clock.now(conn)
        today = budget.budget_day(now, policy.tenant.timezone)
        day_limit = policy.budget.day_microusd
        found = await pauses.with_room(conn, tenant, today, day_limit, AT_ONCE, only)
        await runs.lock(conn, [(tenant, id_) for id_ in found])
        due = await runs.make_due(conn, [(tenant, id_) for id_ in found], now)
    if due:
        engine.ring(Kind.WORK)
    return due


async def let_go_on(engine: Engine, tenant: TenantId) -> None:
    """Wake the runs that have room now; what has made it is stored, whatever comes of this."""
    try:
        await resume(engine, tenant)
    except ExecutorError as error:
        _log.warning("paused runs are left for the next look: %s", error)


async def look_at_paused(engine: Engine) -> None:
    """Find paused runs that have room though nobody woke them, and raises that nobody needs.

    Opens its own transactions; each run is looked at once in ``LOOK_AGAIN``.
    """
    async with engine.database.transaction() as conn:
        now = await clock.now(conn)
        due = await pauses.take_due(conn, AT_ONCE, now + LOOK_AGAIN)
        unwanted = await pauses.unwanted_raises(conn, AT_ONCE)
    by_tenant: dict[TenantId, list[RunId]] = {}
    for tenant, run_id in due:
        by_tenant.setdefault(tenant, []).append(run_id)
    for tenant, ids in by_tenant.items():
        await resume(engine, tenant, ids)
    for key, run_id in unwanted:
        await _let_go(engine, key, run_id)


async def _let_go(engine: Engine, key: OperationKey, run_id: RunId) -> None:
    """Withdraw a raise for which no run is paused any more."""
    async with engine.committing(Commit.RESUME) as conn:
        locked = await endings.lock_run_with_operations(conn, [(key[0], run_id)], also=[key])
        chain = await locked.chain(conn)
        row = locked.operations.get(key)
        if row is None or row.status not in UNOPENED or await pauses.waiting_for(conn, [key]):
            return
        ended = (row, locked.approvals.get(key), RunEnded(Reason.NOBODY_WAITS))
        await endings.end_unopened(conn, [ended], "executor", chain)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    engine.ring(Kind.WORK)
