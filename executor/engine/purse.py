"""The accounts that one transaction pays from: locked, then reserved from in order.

Each wish is decided on what the one before left. Locks: run budgets, then tenant-days.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from executor.domain import budget
from executor.domain.budget import Account, Admitted, ReservationStatus
from executor.domain.ids import AttemptId, ReservationId, RunId, TenantId
from executor.domain.journal import Chain
from executor.domain.policy import Policy
from executor.domain.price import CostBound
from executor.domain.transition import Machine, Refused
from executor.engine.charging import grow
from executor.engine.engine import Engine
from executor.store import budgets, clock, model_calls
from executor.store.budgets import Change
from executor.store.connection import Connection


@dataclass(frozen=True, slots=True)
class CallAsk:
    """The call of a model that money is wanted for.

    It may be let write fewer tokens than it wants; ``digest`` names the request that lets it write
    so many.
    """

    model: str
    bound: CostBound
    wanted_output_tokens: int
    digest: Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Ask:
    """A wish to hold money for one call of a run that is held under ``epoch``.

    With ``call`` the amount follows from it, and from what is left; ``attempt_id`` is that of an
    effect which costs something.
    """

    run_key: tuple[TenantId, RunId]
    epoch: int
    purpose: str
    amount_microusd: int
    lasts_seconds: float
    call: CallAsk | None = None
    attempt_id: AttemptId | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Money is held for one call, of which a model may write so many tokens."""

    reservation_id: ReservationId
    max_output_tokens: int = 0


ReserveResult = Held | Refused


@dataclass(slots=True)
class Purse:
    """Accounts that are locked in one transaction, and what is held from them there, in order.

    Every limit is as it stands now: the run's with its raises, the day's with the active policy.
    """

    policies: Mapping[TenantId, Policy]
    runs: dict[budgets.RunKey, Account]
    days: dict[budgets.DayKey, Account]
    new: list[budgets.NewReservation] = field(default_factory=list)
    calls: list[model_calls.NewCall] = field(default_factory=list)

    @classmethod
    async def lock(
        cls,
        conn: Connection,
        policies: Mapping[TenantId, Policy],
        keys: Collection[budgets.RunKey],
        also: Sequence[budgets.RunKey | budgets.DayKey] = (),
    ) -> Purse:
        """Lock the accounts of runs, then those of their tenants' days; policies are shared.

        ``also`` are accounts that the caller needs besides.
        """
        # The day is read before its lock is waited for, and once more after: midnight may pass.
        early = await clock.now(conn)
        limits = {}
        for tenant in {tenant for tenant, _ in keys}:
            policy = policies[tenant]
            for moment in (early, early + timedelta(minutes=1)):
                day = budget.budget_day(moment, policy.tenant.timezone)
                limits[tenant, day] = policy.budget.day_microusd
        for tenant, named in also:
            if isinstance(named, date):
                limits.setdefault((tenant, named), 0)
        of_others = {(t, named) for t, named in also if not isinstance(named, date)}
        runs = await budgets.lock_run_budgets(conn, sorted({*keys, *of_others}))
        return cls(policies, runs, await budgets.lock_tenant_days(conn, limits))

    def hold(self, engine: Engine, ask: Ask, chain: Chain) -> ReserveResult:
        """Hold what is asked, or say which limit refuses it; ``chain`` was locked after this."""
        tenant, run_id = ask.run_key
        day = self._day(tenant, chain)
        of_run, of_day = self.runs[ask.run_key], self.days[tenant, day]
        amount, output = ask.amount_microusd, 0
        if ask.call is not None:
            wanted = ask.call.wanted_output_tokens
            output = budget.output_within(of_run, of_day, ask.call.bound, wanted)
            amount = ask.call.bound.of(output)
        admitted = self._admit(ask.run_key, amount, chain)
        if not isinstance(admitted, Admitted):
            return admitted
        self.runs[ask.run_key], self.days[tenant, day] = admitted.run, admitted.day
        id_ = ReservationId(engine.mint())
        self.new.append(_reservation(ask, id_, day, amount, chain))
        if ask.call is not None:
            digest = ask.call.digest(output)
            self.calls.append(
                model_calls.NewCall(tenant, id_, run_id, ask.call.model, digest, output)
            )
        return Held(id_, output)

    def objection(
        self, run_key: tuple[TenantId, RunId], amount: int, chain: Chain
    ) -> Refused | None:
        """Say which limit has no room for so much; nothing is held."""
        admitted = self._admit(run_key, amount, chain)
        return None if isinstance(admitted, Admitted) else admitted

    def _admit(
        self, run_key: tuple[TenantId, RunId], amount: int, chain: Chain
    ) -> Admitted | Refused:
        day = self._day(run_key[0], chain)
        admitted = budget.reserve(self.runs[run_key], self.days[run_key[0], day], amount)
        if isinstance(admitted, Refused) and admitted.detail["limit"] == "day":
            renews = budget.renewal(day, self.policies[run_key[0]].tenant.timezone)
            return replace(admitted, detail={**admitted.detail, **renews})
        return admitted

    def _day(self, tenant: TenantId, chain: Chain) -> date:
        return budget.budget_day(chain.now, self.policies[tenant].tenant.timezone)

    async def write(self, conn: Connection, chain: Chain) -> None:
        """Write what is held, and the calls that it is held for."""
        if not self.new:
            return
        by_run: dict[budgets.RunKey, Change] = {}
        by_day: dict[budgets.DayKey, Change] = {}
        for r in self.new:
            change = Change(held=r.amount_microusd)
            grow(by_run, (r.tenant_id, r.run_id), change)
            grow(by_day, (r.tenant_id, r.day), change)
        await budgets.insert(conn, self.new, chain.now)
        await model_calls.insert(conn, self.calls, chain.now)
        await budgets.add(conn, by_run, by_day)


def _reservation(
    ask: Ask, id_: ReservationId, day: date, amount: int, chain: Chain
) -> budgets.NewReservation:
    tenant, run_id = ask.run_key
    entry = chain.birth(
        Machine.RESERVATION,
        tenant,
        run_id,
        id_,
        ReservationStatus.HELD,
        "executor",
        {"amount_microusd": amount, "day": day.isoformat(), "purpose": ask.purpose},
    )
    deadline = chain.now + timedelta(seconds=ask.lasts_seconds)
    return budgets.NewReservation(
        tenant, id_, run_id, day, ask.purpose, amount, deadline, entry, ask.attempt_id
    )
