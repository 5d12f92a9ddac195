"""A charge that nobody knew is settled to what the provider's invoice says, by whoever operates.

A person's word never voids what is held: an amount of nothing is settled as any other, with the
note as what it rests on. Whatever has been told before stays told. Locks: policies, reservations,
run budgets, tenant-days, cards, journal heads.
"""

from __future__ import annotations

from dataclasses import dataclass

from executor.domain.budget import ReservationStatus, Settle
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.journal import tenant_subject
from executor.domain.payloads import JsonObject
from executor.domain.secret_text import as_kept
from executor.domain.transition import Reason, Refused
from executor.engine.charging import charge, lock_for_charge
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.granting import LONGEST_NOTE, objection_to_operating
from executor.engine.pausing import let_go_on
from executor.engine.rights import read_rights
from executor.store import charges, clock, journal, progress, tenants
from executor.store.charges import ChargeEnd, NamedCharge
from executor.store.connection import Connection
from executor.store.wakeups import Kind


@dataclass(frozen=True, slots=True)
class Invoiced:
    """What somebody read on an invoice.

    ``charge`` is how a charge is named, see ``executor.domain.charge_name``; ``note`` tells where
    the amount stands.
    """

    charge: str
    actual_microusd: int
    note: str


@dataclass(frozen=True, slots=True)
class SettledNow:
    """The charge is settled to what was said; what was held of it is free."""

    charge: NamedCharge
    actual_microusd: int


@dataclass(frozen=True, slots=True)
class KnownBefore:
    """What it cost was known before, and nothing was changed."""

    charge: NamedCharge
    end: ChargeEnd


SettleResult = SettledNow | KnownBefore | Refused


async def settle_invoiced(
    engine: Engine, tenant: TenantId, by: PrincipalId, said: Invoiced
) -> SettleResult:
    """Settle one unknown charge; opens its own transactions. Once more: ``KnownBefore``.

    The day of its reservation is charged, whichever that was, and its run, if it has ended as well.
    Who may not is journaled. Raises ``CommitUnknown``.
    """
    async with engine.committing(Commit.SETTLE) as conn:
        policies = await tenants.share_policies(conn, [tenant])
        rights = await read_rights(conn, policies, [(tenant, by)])
        found = await charges.named(conn, tenant, said.charge)
        locked = await lock_for_charge(conn, [(tenant, one.id) for one in found])
        authority = rights.of(policies.get(tenant), await clock.now(conn))
        if authority is None:
            return _FORBIDDEN
        objection = await objection_to_operating(conn, authority, tenant, by)
        if objection is not None:
            return await _note_refusal(conn, tenant, by, said, objection)
        if len(found) != 1:
            return Refused(Reason.CHARGE_NOT_FOUND, {"several": len(found) > 1})
        # What was read before the lock may have changed since.
        [one] = await charges.named(conn, tenant, found[0].id.hex)
        if one.status is not ReservationStatus.UNKNOWN:
            return await _known(conn, tenant, one)
        await progress.want(conn, [(tenant, one.run_id)])
        chain = await journal.lock_chain(conn, [(tenant, one.run_id)])
        note: JsonObject = {"note": as_kept(said.note, LONGEST_NOTE)}
        event = {(tenant, one.id): Settle(said.actual_microusd)}
        await charge(conn, locked, event, chain, actor=by, told=note)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    await let_go_on(engine, tenant)
    return SettledNow(one, said.actual_microusd)


_FORBIDDEN = Refused(Reason.NOT_PERMITTED, {"missing": "settle_charge"})


async def _known(conn: Connection, tenant: TenantId, one: NamedCharge) -> KnownBefore | Refused:
    if one.status is ReservationStatus.HELD:
        until = one.deadline_at.isoformat()
        return Refused(Reason.CHARGE_NOT_UNKNOWN, {"status": one.status.value, "until": until})
    return KnownBefore(one, await charges.end_of(conn, tenant, one.id))


async def _note_refusal(
    conn: Connection, tenant: TenantId, by: PrincipalId, said: Invoiced, objection: Refused
) -> Refused:
    """Keep that somebody who may not has tried, as it is kept of grants."""
    if objection.reason is Reason.IDENTITY_UNKNOWN:
        return objection
    subject = tenant_subject(tenant)
    chain = await journal.lock_chain(conn, [(tenant, subject)])
    detail: JsonObject = {
        "asked": "settle",
        "charge": said.charge,
        "actual_microusd": said.actual_microusd,
        "reason": objection.reason.value,
    }
    refused = chain.note(tenant, subject, subject, "charge_refused", by, detail)
    await journal.write_notes(conn, [refused])
    await journal.advance(conn, chain)
    return _FORBIDDEN if objection.reason is Reason.NOT_PERMITTED else objection
