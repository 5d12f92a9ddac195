"""Charges as calls of a model leave them, and what is stored of money."""

from __future__ import annotations

from executor.domain.budget import Event, LoseSight
from executor.domain.charge_name import charge_label
from executor.domain.ids import OperationId, ReservationId, RunId
from executor.engine.budget import reserve
from executor.engine.charging import charge_alone
from executor.engine.claims import ClaimedRun
from executor.engine.engine import Engine
from executor.engine.purse import Ask, Held
from tests.support.office import TENANT, Office

CENT = 10_000
CALL_SECONDS = 60.0


async def hold(engine: Engine, claimed: ClaimedRun, amount: int) -> ReservationId:
    """Hold money for one call, which is under way then."""
    ask = Ask(claimed.key, claimed.lease.epoch, "model:test", amount, CALL_SECONDS)
    [held] = await reserve(engine, [ask])
    assert isinstance(held, Held), held
    return held.reservation_id


async def end_call(engine: Engine, claimed: ClaimedRun, id_: ReservationId, event: Event) -> None:
    """Let one call end so."""
    await charge_alone(engine, {(claimed.key[0], id_): event})


async def lose(engine: Engine, claimed: ClaimedRun, amount: int) -> str:
    """Make one call of which nobody knows what it cost; returns how people name its charge."""
    id_ = await hold(engine, claimed, amount)
    await end_call(engine, claimed, id_, LoseSight())
    return charge_label(id_)


async def account_of(office: Office, run_id: RunId) -> tuple[int, int, int]:
    """Read what a run has spent, holds, and holds of it for calls of unknown cost."""
    [found] = await office.rows(
        "SELECT spent_microusd, held_microusd, unknown_microusd FROM run_budgets "
        "WHERE tenant_id = :t AND run_id = :r",
        t=TENANT,
        r=run_id,
    )
    spent, held, unknown = found
    return spent, held, unknown


async def days_of(office: Office) -> list[tuple[int, int]]:
    """Read what each day has spent and holds, oldest first."""
    return [
        (spent, held)
        for spent, held in await office.rows(
            "SELECT spent_microusd, held_microusd FROM tenant_days WHERE tenant_id = :t "
            "ORDER BY day",
            t=TENANT,
        )
    ]


async def raises(office: Office) -> list[OperationId]:
    """List the operations that ask for a higher limit, in their order."""
    rows = await office.rows(
        "SELECT id FROM operations WHERE kind = 'raise_budget' ORDER BY number"
    )
    return [OperationId(id_) for (id_,) in rows]
