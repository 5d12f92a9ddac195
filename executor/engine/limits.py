"""The limits that raises are about: locked, compared with what was approved, and set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from executor.domain.budget import Account
from executor.domain.errors import LostRace
from executor.domain.ids import TenantId
from executor.domain.intent import RAISE_BUDGET
from executor.domain.policy import Policy
from executor.domain.raising import Raising, is_within_the_cap
from executor.domain.transition import Reason, Refused
from executor.store import budgets
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow


def raising_of(row: OperationRow) -> Raising:
    """Return what a raise asks for, as its intent holds it."""
    return Raising.from_json(json.loads(row.intent)["raise"])


async def lock_limits(
    conn: Connection, policies: Mapping[TenantId, Policy], rows: Iterable[OperationRow]
) -> dict[OperationKey, Account]:
    """Lock the accounts whose limits these operations would raise, by the operation.

    There is none for a raise beyond what the policy of now caps.
    """
    wanted = [(row.key, raising_of(row)) for row in rows if row.kind == RAISE_BUDGET]
    if not wanted:
        return {}
    run_keys = {(k[0], r.limit.run_id) for k, r in wanted if r.limit.run_id is not None}
    days = {
        (k[0], r.limit.day): policies[k[0]].budget.day_microusd
        for k, r in wanted
        if r.limit.day is not None and k[0] in policies
    }
    of_runs = await budgets.lock_run_budgets(conn, run_keys) if run_keys else {}
    of_days = await budgets.lock_tenant_days(conn, days) if days else {}
    found: dict[OperationKey, Account] = {}
    for key, raising in wanted:
        limit = raising.limit
        account = None
        if limit.run_id is not None:
            account = of_runs.get((key[0], limit.run_id))
        elif limit.day is not None:
            account = of_days.get((key[0], limit.day))
        policy = policies.get(key[0])
        if account is not None and policy is not None and is_within_the_cap(policy, raising):
            found[key] = account
    return found


def limit_objection(row: OperationRow, account: Account | None) -> Refused | None:
    """The limit must stand where it stood, and may still be raised so far: a raise is of what
    people were shown, or of nothing.
    """
    approved = raising_of(row).current_microusd
    if account is not None and account.limit_microusd == approved:
        return None
    now = None if account is None else account.limit_microusd
    return Refused(Reason.LIMIT_CHANGED, {"approved_microusd": approved, "limit_microusd": now})


async def raise_limits(conn: Connection, raises: Sequence[tuple[TenantId, Raising]]) -> None:
    """Set limits that are locked and were compared; of each there is one raise at a time."""
    for tenant, raising in raises:
        limit, before, after = raising.limit, raising.current_microusd, raising.new_microusd
        if limit.day is not None:
            await budgets.raise_day(conn, tenant, limit.day, after - before)
            continue
        assert limit.run_id is not None, "it is a run's limit or a day's"
        if not await budgets.raise_run(
            conn, tenant, limit.run_id, from_limit=before, to_limit=after
        ):
            raise LostRace("raise_run_limit", 1)
