"""Reads why a run is paused, as its own message tells it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from executor.domain.budget import Account
from executor.domain.ids import RunId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.policy import Policy
from executor.domain.raising import Scope
from executor.store import budgets, pauses
from executor.store.budgets import UnknownCharge
from executor.store.connection import Connection

MOST_CHARGES = 5
Charge = UnknownCharge
"""One call of which nobody knows what it cost."""


@dataclass(frozen=True, slots=True)
class PauseRecord:
    """At which limit a run is paused, how that stands, and what would let the run go on.

    ``asked`` is the operation that asks for more, with where it stands; ``not_raised`` is how the
    last one has ended, where nothing was raised. ``renews_at`` is when a day's limit is renewed,
    and ``unknown`` are charges that hold money of the limit, the oldest few.
    """

    scope: Scope
    account: Account
    needed_microusd: int
    zone: ZoneInfo
    renews_at: datetime | None
    asked: tuple[int, OperationStatus] | None
    not_raised: OperationStatus | None
    unknown: tuple[Charge, ...]


async def read_pause(
    conn: Connection, policy: Policy, tenant: TenantId, id_: RunId
) -> PauseRecord | None:
    """Read why one run is paused; ``None``: it is not."""
    row = await pauses.of_run(conn, (tenant, id_))
    if row is None:
        return None
    scope = Scope(row.scope)
    if scope is Scope.DAY:
        limit = policy.budget.day_microusd
        account = await budgets.account_of_day(conn, tenant, row.day, limit)
        unknown = await budgets.unknown_charges(conn, tenant, day=row.day, most=MOST_CHARGES)
    else:
        found = await budgets.account_of_run(conn, tenant, id_)
        assert found is not None, "a run has an account from its start"
        account = found
        unknown = await budgets.unknown_charges(conn, tenant, id_, most=MOST_CHARGES)
    asked = None
    if row.raise_number is not None:
        asked = (row.raise_number, OperationStatus(row.raise_status))
    return PauseRecord(
        scope,
        account,
        row.needed_microusd,
        ZoneInfo(policy.tenant.timezone),
        row.renews_at,
        asked,
        None if row.not_raised is None else OperationStatus(row.not_raised),
        tuple(unknown),
    )
