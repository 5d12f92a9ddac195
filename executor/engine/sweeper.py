"""T8: what no message will announce is found by looking: deadlines, lost wake-ups, old hashes.

Any process may sweep, and several may at once: each change is conditional on the record. A sweep
that dies leaves nothing behind that the next one needs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from executor.domain.budget import LoseSight
from executor.domain.errors import ExecutorError
from executor.engine.charging import charge_alone
from executor.engine.effect_costs import charge_effects
from executor.engine.endings import expire, stop_for_time
from executor.engine.engine import Engine
from executor.engine.group import together_or_apart
from executor.engine.late_evidence import match_late_evidence
from executor.engine.nudging import end_nudges, nudge
from executor.engine.pausing import look_at_paused
from executor.engine.reconciler import reconcile
from executor.engine.unseen import alarm_unseen
from executor.engine.waking import wake
from executor.store import approvals, budgets, nudges, runs, second_factors

_log = logging.getLogger(__name__)

AT_ONCE = 100
REQUESTS_KEPT_SECONDS = 1_200.0
"""Twice the ten minutes for which a signed request can be valid (a clock five minutes off)."""


async def sweep(engine: Engine) -> None:
    """Look once at everything whose time may be over; one part's failure stops no other."""
    for part in _PARTS:
        await _guarded(part, engine)


async def sweep_until_cancelled(engine: Engine) -> None:
    """Sweep every ``sweep_seconds``."""
    while True:
        await sweep(engine)
        await asyncio.sleep(engine.durations.sweep_seconds)


async def _guarded(part: Callable[[Engine], Awaitable[object]], engine: Engine) -> None:
    try:
        await part(engine)
    except ExecutorError as error:
        _log.warning("a sweep was left for the next one: %s", error)
    except Exception:
        _log.exception("a part of the sweep failed and is left for the next one")


async def _expire(engine: Engine) -> None:
    async with engine.database.transaction() as conn:
        keys = await approvals.past_their_time(conn, AT_ONCE)
    if keys:
        await together_or_apart(lambda some: expire(engine, some), keys)


async def _nudge(engine: Engine) -> None:
    async with engine.database.transaction() as conn:
        keys = await nudges.to_make(conn, AT_ONCE)
    if keys:
        await together_or_apart(lambda some: nudge(engine, some), keys)
    await end_nudges(engine, AT_ONCE)


async def _end_runs(engine: Engine) -> None:
    async with engine.database.transaction() as conn:
        keys = await runs.past_deadline(conn, AT_ONCE)
        keys += await runs.parked_too_long(conn, AT_ONCE)
    for key in keys:
        await together_or_apart(lambda one: stop_for_time(engine, *one), [key])


async def _lose_sight(engine: Engine) -> None:
    """Money held for a call that must be over stays counted, as unknown."""
    async with engine.database.transaction() as conn:
        keys = await budgets.past_deadline(conn, AT_ONCE)
    if keys:
        await together_or_apart(
            lambda some: charge_alone(engine, {key: LoseSight() for key in some}), keys
        )


async def _forget(engine: Engine) -> None:
    async with engine.database.transaction() as conn:
        await approvals.forget_requests(conn, REQUESTS_KEPT_SECONDS)
        await second_factors.forget_links(conn, REQUESTS_KEPT_SECONDS)


_PARTS: tuple[Callable[[Engine], Awaitable[object]], ...] = (
    reconcile,
    match_late_evidence,
    _expire,
    _nudge,
    _end_runs,
    _lose_sight,
    charge_effects,
    wake,
    look_at_paused,
    alarm_unseen,
    _forget,
)
