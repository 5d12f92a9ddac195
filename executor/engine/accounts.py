"""What people ask about money: how a day and its runs stand, and what nobody knows the cost of.

Everybody who may ask or decide sees the day and the runs that they asked for, operators see all.
Reading changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from executor.domain import budget, identity
from executor.domain.authority import Authority
from executor.domain.budget import Account
from executor.domain.ids import PrincipalId, RunId, TenantId, is_operator
from executor.domain.policy import Permission, Policy
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Refused
from executor.engine.engine import Engine
from executor.engine.granting import objection_to_operating
from executor.engine.rights import read_rights
from executor.store import budgets, charges, clock, model_calls, runs, tenants
from executor.store.budgets import UnknownCharge
from executor.store.connection import Connection
from executor.store.model_calls import ModelCall
from executor.store.people import read_identities

Unknown = UnknownCharge
"""One call of which nobody knows what it cost."""

ShortRun = charges.ShortRun
"""A run that is paused, or with calls of which nobody knows what they cost."""

Call = ModelCall
"""One call of a model, with what is charged for it."""

MOST_RUNS = 50
MOST_CHARGES = 100


@dataclass(frozen=True, slots=True)
class DayAccount:
    """What a tenant may spend on one day in its own time zone, and when the next day begins."""

    day: date
    account: Account
    renews_at: datetime


@dataclass(frozen=True, slots=True)
class Accounts:
    """How money stands at one moment; ``is_whole`` where the runs are those of all people.

    ``runs`` are paused or have unknown charges, newest first, ``MOST_RUNS`` at most; ``unknown``
    are the charges, oldest first, ``MOST_CHARGES`` at most.
    """

    today: DayAccount
    runs: Sequence[ShortRun]
    unknown: Sequence[Unknown]
    now: datetime
    zone: ZoneInfo
    is_whole: bool


@dataclass(frozen=True, slots=True)
class RunAccount:
    """How one run's money stands, with the calls of models that it has made."""

    number: int
    status: RunStatus
    account: Account
    calls: Sequence[Call]
    unknown: Sequence[Unknown]
    now: datetime
    zone: ZoneInfo


async def see_accounts(engine: Engine, tenant: TenantId, by: PrincipalId) -> Accounts | Refused:
    """Read how money stands, as far as it concerns ``by``. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        sight = await _look(conn, tenant, by)
        if isinstance(sight, Refused):
            return sight
        about = None if sight.sees_all else by
        short = await charges.short_runs(conn, tenant, MOST_RUNS, about)
        unknown = await _unknown(conn, tenant, None if sight.sees_all else short)
        zone, now = sight.zone, sight.authority.now
        return Accounts(
            await _today(conn, sight.authority), short, unknown, now, zone, sight.sees_all
        )


async def see_run(
    engine: Engine, tenant: TenantId, by: PrincipalId, number: int
) -> RunAccount | Refused:
    """Read the account of one run, whoever asked for it if ``by`` operates; else of their own.

    Another tenant's is as unknown as none. Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        sight = await _look(conn, tenant, by)
        if isinstance(sight, Refused):
            return sight
        id_ = await runs.find(conn, tenant, number)
        row = None if id_ is None else await runs.show(conn, tenant, id_)
        if id_ is None or row is None:
            return Refused(Reason.RUN_UNKNOWN)
        if not sight.sees_all and row.requester != by:
            return _NOT_THEIRS
        account = await budgets.account_of_run(conn, tenant, id_)
        assert account is not None, "a run has an account from its start"
        calls = await model_calls.of_run(conn, (tenant, id_))
        unknown = await budgets.unknown_charges(conn, tenant, id_, most=MOST_CHARGES)
        return RunAccount(
            row.number,
            RunStatus(row.status),
            account,
            calls,
            unknown,
            sight.authority.now,
            sight.zone,
        )


_NOT_THEIRS = Refused(Reason.NOT_PERMITTED, {"missing": "see_money"})


@dataclass(frozen=True, slots=True)
class _Sight:
    """Whoever looks, and how far."""

    authority: Authority
    sees_all: bool

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.authority.policy.tenant.timezone)


async def _look(conn: Connection, tenant: TenantId, by: PrincipalId) -> _Sight | Refused:
    policies = await tenants.share_policies(conn, [tenant])
    policy: Policy | None = policies.get(tenant)
    if policy is None:
        return _NOT_THEIRS
    rights = await read_rights(conn, policies, [(tenant, by)])
    authority = rights.authority(policy, await clock.now(conn))
    if is_operator(by):
        return _Sight(authority, True)
    known = (await read_identities(conn, [(tenant, by)])).get((tenant, by))
    stranger = identity.objection(known, policy.slack.team, now=authority.now)
    if stranger is not None:
        return stranger
    if await objection_to_operating(conn, authority, tenant, by) is None:
        return _Sight(authority, True)
    refusals = [authority.objection(by, p) for p in (Permission.REQUEST, Permission.APPROVE)]
    if None in refusals:
        return _Sight(authority, False)
    unseen = [r for r in refusals if r is not None and r.reason is Reason.IDENTITY_UNKNOWN]
    return unseen[0] if unseen else _NOT_THEIRS


async def _unknown(
    conn: Connection, tenant: TenantId, only: Sequence[ShortRun] | None
) -> list[Unknown]:
    """Read unknown charges, of all runs or of some."""
    if only is None:
        return await budgets.unknown_charges(conn, tenant, most=MOST_CHARGES)
    ids: list[RunId] = [one.id for one in only if one.account.unknown_microusd]
    found: list[Unknown] = []
    for id_ in ids:
        found += await budgets.unknown_charges(conn, tenant, id_, most=MOST_CHARGES)
    return sorted(found, key=lambda one: (one.reserved_at, one.id.int))[:MOST_CHARGES]


async def _today(conn: Connection, authority: Authority) -> DayAccount:
    policy = authority.policy
    day = budget.budget_day(authority.now, policy.tenant.timezone)
    account = await budgets.account_of_day(conn, policy.tenant_id, day, policy.budget.day_microusd)
    renews_at = str(budget.renewal(day, policy.tenant.timezone)["renews_at"])
    return DayAccount(day, account, datetime.fromisoformat(renews_at))
