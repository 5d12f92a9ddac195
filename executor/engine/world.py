"""What openings are decided from: every row that counts, read under all locks in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from executor.domain.approval import Approval
from executor.domain.authority import Authority
from executor.domain.budget import Account
from executor.domain.identity import Identity
from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.domain.interest import Interest
from executor.domain.journal import Chain
from executor.domain.operation import OperationStatus
from executor.domain.policy import Policy
from executor.domain.ticket import BUILTIN_DESK, Ticket
from executor.engine import endings
from executor.engine.effect_costs import lock_purse
from executor.engine.limits import lock_limits
from executor.engine.purse import Purse
from executor.engine.rights import Rights, read_rights
from executor.engine.sighting import Sight
from executor.store import (
    approvals,
    desk,
    effects,
    episodes,
    operation_lookups,
    operations,
    proposals,
    runs,
    tenants,
)
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow
from executor.store.people import read_identities


@dataclass(slots=True)
class World:
    """What revalidation reads, all under locks.

    ``sights`` are what was seen of outside tickets before; one that is too old is not among them.
    ``closings`` are what reopenings would undo, by the reopening, and ``limits`` are the accounts
    whose limits raises would raise, by the raise. ``purse`` is what costly effects are paid from.
    """

    policies: dict[TenantId, Policy]
    rights: Rights
    runs: dict[tuple[TenantId, RunId], runs.RunRow]
    tickets: dict[tuple[TenantId, str], Ticket]
    rows: dict[OperationKey, OperationRow]
    consents: dict[OperationKey, Approval]
    parts: dict[OperationKey, list[effects.EffectRow]]
    tries: dict[OperationKey, list[effects.AttemptRow]]
    asked: dict[OperationKey, list[tuple[PrincipalId, bool]]]
    people: dict[tuple[TenantId, PrincipalId], Identity]
    succeeded: set[tuple[TenantId, str]]
    closings: dict[OperationKey, OperationRow]
    chain: Chain
    sights: Mapping[OperationKey, Sight] = field(default_factory=dict)
    limits: Mapping[OperationKey, Account] = field(default_factory=dict)
    purse: Purse | None = None

    def interest(self, row: OperationRow) -> Interest:
        """Say who has an interest in an operation."""
        return Interest(row.requester, self.asked.get(row.key, []), row.editor)

    def authority(self, policy: Policy) -> Authority:
        """Say who may do what under these locks."""
        return self.rights.authority(policy, self.chain.now)


async def lock_world(
    conn: Connection,
    keys: Sequence[OperationKey],
    sights: Mapping[OperationKey, Sight] | None = None,
) -> World:
    """Take every lock in order. The runs and tickets are named by rows that never change them.

    Where a ticket is outside, our own count of its closings is locked in its place.
    """
    tenants_of = {tenant for tenant, _ in keys}
    policies = await tenants.share_policies(conn, tenants_of)
    names = await operation_lookups.peek(conn, keys)
    run_rows = await runs.lock(conn, {(n.tenant_id, n.run_id) for n in names})
    tickets: dict[tuple[TenantId, str], Ticket] = {}
    for tenant in sorted(tenants_of):
        named = [n.ticket for n in names if n.tenant_id == tenant and n.ticket is not None]
        wanted = [id_ for desk_name, id_ in named if desk_name == BUILTIN_DESK]
        locked = await desk.lock_tickets(conn, tenant, wanted)
        tickets |= {(tenant, id_): ticket for id_, ticket in locked.items()}
    await episodes.lock(conn, episodes.outside(names))
    # Beside what is to open, whatever shares its intent key: a late receipt must not prove an
    # earlier one applied between this look at it and our COMMIT.
    same_key = await operation_lookups.of_keys(conn, [(n.tenant_id, n.intent_key) for n in names])
    # A reopening needs its closing to stay as it is just as much.
    closings = [(n.tenant_id, n.compensates) for n in names if n.compensates is not None]
    related = await operations.lock(
        conn, [*keys, *((t, id_) for t, id_, *_ in same_key), *closings]
    )
    rows = {key: related[key] for key in keys if key in related}
    consents = await approvals.lock(conn, list(rows))
    parts = await effects.of_operations(conn, list(rows))
    tries = await effects.attempts_of(conn, list(rows))
    asked = await proposals.requesters_of(conn, list(rows))
    voters = {
        (key[0], principal) for key, consent in consents.items() for principal in consent.approving
    }
    involved = voters | {(r.tenant_id, r.requester) for r in rows.values()}
    rights = await read_rights(conn, policies, involved)
    people = await read_identities(conn, involved | rights.givers())
    purse = await lock_purse(conn, policies, rows, parts)
    limits = await lock_limits(conn, policies, rows.values())
    chain = await endings.lock_cards_and_chain(conn, list(rows.values()))
    succeeded = {
        (other.tenant_id, other.intent_key)
        for other in related.values()
        if other.status is OperationStatus.SUCCEEDED
    }
    return World(
        policies,
        rights,
        run_rows,
        tickets,
        rows,
        consents,
        parts,
        tries,
        asked,
        people,
        succeeded,
        {
            key: related[row.tenant_id, row.compensates]
            for key, row in rows.items()
            if row.compensates is not None
        },
        chain,
        {key: seen for key, seen in (sights or {}).items() if seen.is_usable(chain.now)},
        limits,
        purse,
    )
