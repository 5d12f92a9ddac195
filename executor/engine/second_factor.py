"""A second factor: time-based codes (RFC 6238) of a secret that only its owner's device has.

An operator enrols people, so that a stolen Slack session cannot enrol itself. Secrets are kept
sealed; each code counts once, and whoever guesses is kept out for a while.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

import pyotp

from executor.domain.ids import PrincipalId, TenantId, slack_user
from executor.domain.journal import Chain, tenant_subject
from executor.domain.transition import Reason, Refused
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.store import journal, second_factors, tenants
from executor.store.connection import Connection
from executor.store.second_factors import FactorLine, SecondFactor

STEP_SECONDS = 30
MOST_FAILURES = 5
BLOCKED_FOR = timedelta(minutes=15)
_STEPS_OFF = (0, -1, 1)
"""Codes of the step before and after count as well: clocks differ, and people type slowly."""


class Sealer(Protocol):
    """Keeps secrets from whoever reads the database."""

    def seal(self, secret: str) -> str:
        """Return the secret so that only ``unseal`` can read it."""

    def unseal(self, sealed: str) -> str | None:
        """Return the secret, or ``None`` where it was sealed with a key that is not here."""


@dataclass(frozen=True, slots=True)
class Enrolled:
    """What goes into the owner's device, once; it is not kept in this form."""

    secret: str
    uri: str


@dataclass(frozen=True, slots=True)
class Passed:
    """The code is right, and counts no more."""


async def enrol(
    engine: Engine, sealer: Sealer, tenant: TenantId, who: PrincipalId, by: PrincipalId
) -> Enrolled | Refused:
    """Give somebody a new second factor, in place of the one before; opens its own transaction."""
    user = slack_user(who)
    if user is None or user[0] != tenant:
        return Refused(Reason.GRANT_INVALID, {"problem": "person"})
    secret = pyotp.random_base32()
    async with engine.committing(Commit.GRANT) as conn:
        policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
        issuer = "Signoff" if policy is None else f"Signoff {policy.tenant.name}"
        chain = await journal.lock_chain(conn, [(tenant, tenant_subject(tenant))])
        await second_factors.put(conn, tenant, who, sealer.seal(secret), by, chain.now)
        await _note(conn, chain, tenant, "second_factor_given", who, by)
    return Enrolled(secret, pyotp.TOTP(secret).provisioning_uri(name=user[1], issuer_name=issuer))


async def withdraw(engine: Engine, tenant: TenantId, who: PrincipalId, by: PrincipalId) -> bool:
    """Take somebody's second factor away; returns whether there was one. Own transaction."""
    async with engine.committing(Commit.GRANT) as conn:
        chain = await journal.lock_chain(conn, [(tenant, tenant_subject(tenant))])
        if not await second_factors.drop(conn, tenant, who):
            return False
        await _note(conn, chain, tenant, "second_factor_taken", who, by)
    return True


async def list_factors(engine: Engine, tenant: TenantId) -> Sequence[FactorLine]:
    """List whoever has a second factor; opens its own transaction."""
    async with engine.database.transaction() as conn:
        return await second_factors.listed(conn, tenant)


async def judge_code(
    engine: Engine, sealer: Sealer, tenant: TenantId, who: PrincipalId, code: str
) -> Passed | Refused:
    """Judge one code, once: what it came to is stored before this returns. Own transaction."""
    async with engine.committing(Commit.JUDGE_CODE) as conn:
        factor = await second_factors.lock(conn, tenant, who)
        if factor is None:
            return Refused(Reason.NO_SECOND_FACTOR)
        chain = await journal.lock_chain(conn, [(tenant, tenant_subject(tenant))])
        if factor.blocked_until is not None and chain.now < factor.blocked_until:
            return Refused(Reason.SECOND_FACTOR_BLOCKED)
        secret = sealer.unseal(factor.sealed)
        if secret is None:
            return Refused(Reason.NO_SECOND_FACTOR)
        step = _step_of(secret, code, int(chain.now.timestamp()) // STEP_SECONDS)
        if step is not None and step > factor.used_step:
            passed = SecondFactor(factor.sealed, step, 0, None)
            await second_factors.judge(conn, tenant, who, passed)
            return Passed()
        failed = replace(factor, failures=factor.failures + 1)
        if failed.failures >= MOST_FAILURES:
            failed = replace(failed, failures=0, blocked_until=chain.now + BLOCKED_FOR)
            await _note(conn, chain, tenant, "second_factor_blocked", who, who)
        await second_factors.judge(conn, tenant, who, failed)
    return Refused(Reason.SECOND_FACTOR_WRONG)


def _step_of(secret: str, code: str, now: int) -> int | None:
    """Return the time step whose code this is, or ``None``; takes the same time for each."""
    given = "".join(code.split())
    totp = pyotp.TOTP(secret)
    found = None
    for off in _STEPS_OFF:
        expected = totp.at((now + off) * STEP_SECONDS)
        if hmac.compare_digest(expected.encode(), given.encode()):
            found = now + off
    return found


async def _note(
    conn: Connection,
    chain: Chain,
    tenant: TenantId,
    event: str,
    who: PrincipalId,
    by: PrincipalId,
) -> None:
    subject = tenant_subject(tenant)
    note = chain.note(tenant, subject, subject, event, by, {"principal": who})
    await journal.write_notes(conn, [note])
    await journal.advance(conn, chain)
