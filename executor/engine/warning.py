"""People are told that a limit is near, once: in the run's thread, of a day in the cards' channel.

In the commit that holds money when that much is gone already; a run that spends nothing more needs
no warning. Locks: as ``budget.reserve``, whose accounts are locked.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from executor.domain.budget import Account
from executor.domain.ids import TenantId
from executor.domain.journal import Chain
from executor.domain.policy import Policy
from executor.domain.soft_limit import is_near, used
from executor.engine.card_record import WarningRecord
from executor.engine.engine import Engine
from executor.store import budget_warnings, cards
from executor.store.budgets import DayKey, RunKey
from executor.store.cards import SubjectKind
from executor.store.connection import Connection


async def warn_once(
    conn: Connection,
    engine: Engine,
    policies: Mapping[TenantId, Policy],
    runs: Mapping[RunKey, Account],
    days: Mapping[DayKey, Account],
    chain: Chain,
) -> None:
    """Tell of every locked account that is near its limit and was not told of yet."""
    made: list[tuple[TenantId, UUID]] = []
    for run_key, account in runs.items():
        id_ = engine.mint()
        if is_near(account, policies[run_key[0]].budget.warn_at_percent) and (
            await budget_warnings.warn_of_run(conn, run_key, id_, used(account), chain.now)
        ):
            made.append((run_key[0], id_))
    for day_key, account in days.items():
        id_, limit = engine.mint(), account.limit_microusd
        if is_near(account, policies[day_key[0]].budget.warn_at_percent) and (
            await budget_warnings.warn_of_day(conn, day_key, id_, used(account), limit, chain.now)
        ):
            made.append((day_key[0], id_))
    if made:
        told = [(tenant, id_, SubjectKind.WARNING) for tenant, id_ in made]
        await cards.want(conn, told, chain.now)


async def read_warning(conn: Connection, tenant: TenantId, id_: UUID) -> WarningRecord:
    """Read everything that one warning may say."""
    row = await budget_warnings.show(conn, tenant, id_)
    assert row is not None, "a warning that is told exists"
    return WarningRecord(tenant, id_, row.run, row.day, row.used_microusd, row.limit_microusd)
