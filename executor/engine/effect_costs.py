"""What effects cost, where the policy says so: held with their attempt, charged by what it came to.

Of an operation that is opened, all that is still to be done must fit, so that nothing ends half
done for want of money; each attempt holds its own part. It is settled once it is applied, and
voided once that is proved not to be: a person's word is no proof of that, and what is unknown stays
counted. What happens in our own database costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from executor.domain.budget import Event, Settle, Void
from executor.domain.effect import Attempt, AttemptStatus, Capability, EffectKind, EffectStatus
from executor.domain.ids import TenantId
from executor.domain.intent import RAISE_BUDGET
from executor.domain.journal import Chain
from executor.domain.policy import Policy
from executor.domain.transition import Refused
from executor.engine.charging import charge_alone
from executor.engine.engine import Engine
from executor.engine.group import together_or_apart
from executor.engine.limits import raising_of
from executor.engine.purse import Ask, Purse
from executor.engine.word import SAID_BY
from executor.store import budgets
from executor.store.connection import Connection
from executor.store.effects import EffectRow
from executor.store.operations import OperationKey, OperationRow

AT_ONCE = 100
_OVER = frozenset({EffectStatus.APPLIED, EffectStatus.SKIPPED})


def cost_of(policy: Policy, row: OperationRow, part: EffectRow) -> int:
    """Say what one attempt of a part costs, in micro-dollars."""
    if part.capability is Capability.TRANSACTIONAL:
        return 0
    if part.kind is EffectKind.TOOL_CALL:
        server = policy.servers.get(row.resource.place)
        return 0 if server is None else server.costs.get(row.resource.thing, 0)
    return next((cost for kind, cost in policy.costs.items() if kind == part.kind.value), 0)


def cost_of_the_rest(policy: Policy, row: OperationRow, parts: Sequence[EffectRow]) -> int:
    """Say what all that is still to be done of an operation costs."""
    return sum(cost_of(policy, row, part) for part in parts if part.status not in _OVER)


async def lock_purse(
    conn: Connection,
    policies: Mapping[TenantId, Policy],
    rows: Mapping[OperationKey, OperationRow],
    parts: Mapping[OperationKey, Sequence[EffectRow]],
) -> Purse | None:
    """Lock the accounts that these operations are paid from; ``None`` where none costs anything.

    Accounts whose limits others of them raise are locked with them: all runs come before all days.
    """
    costly = [
        row
        for key, row in rows.items()
        if row.tenant_id in policies
        and cost_of_the_rest(policies[row.tenant_id], row, parts.get(key, ()))
    ]
    if not costly:
        return None
    return await Purse.lock(
        conn,
        {row.tenant_id: policies[row.tenant_id] for row in costly},
        {(row.tenant_id, row.run_id) for row in costly},
        also=list(_raised(rows.values())),
    )


def _raised(rows: Iterable[OperationRow]) -> Iterable[budgets.RunKey | budgets.DayKey]:
    for row in rows:
        if row.kind == RAISE_BUDGET:
            limit = raising_of(row).limit
            if limit.run_id is not None:
                yield row.tenant_id, limit.run_id
            elif limit.day is not None:
                yield row.tenant_id, limit.day


def cost_objection(
    purse: Purse | None,
    policy: Policy,
    row: OperationRow,
    parts: Sequence[EffectRow],
    chain: Chain,
) -> Refused | None:
    """Say which limit has no room for what is still to be done; ``None``: there is room."""
    asked = cost_of_the_rest(policy, row, parts)
    if purse is None or not asked:
        return None
    return purse.objection((row.tenant_id, row.run_id), asked, chain)


def hold_for_attempt(
    engine: Engine,
    purse: Purse | None,
    policy: Policy,
    row: OperationRow,
    part: EffectRow,
    attempt: Attempt,
    chain: Chain,
) -> None:
    """Hold what an attempt costs; it was checked under the same locks that there is room."""
    asked = cost_of(policy, row, part)
    if purse is None or not asked:
        return
    ask = Ask(
        (row.tenant_id, row.run_id),
        0,
        f"effect:{part.kind.value}",
        asked,
        (attempt.conclude_at - chain.now).total_seconds(),
        attempt_id=attempt.id,
    )
    held = purse.hold(engine, ask, chain)
    assert not isinstance(held, Refused), "the check of the budget has let it"


async def charge_effects(engine: Engine) -> None:
    """Charge for attempts of which it is known what they came to; a part of the sweep.

    Opens its own transactions. Several at once do no harm: a reservation is charged once.
    """
    async with engine.database.transaction() as conn:
        due = await budgets.of_concluded_attempts(conn, SAID_BY, AT_ONCE)
    if not due:
        return
    events: dict[budgets.ReservationKey, Event] = {
        key: Settle(amount) if status is AttemptStatus.APPLIED else Void()
        for key, amount, status in due
    }
    await together_or_apart(
        lambda some: charge_alone(engine, {key: events[key] for key in some}), list(events)
    )
