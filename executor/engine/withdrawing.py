"""Taking back what nobody wants any more: by whoever asked for it, or by an operator.

Only what was not opened can be taken back; what is being sent is told truthfully. The run is told
that it was withdrawn, as of every other end. Locks: policies, operations, approvals, cards, journal
heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from executor.domain import identity, operation
from executor.domain.authority import Authority
from executor.domain.errors import CommitUnknown
from executor.domain.identity import Identity
from executor.domain.ids import OperationId, PrincipalId, TenantId, is_operator
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.policy import Permission
from executor.domain.transition import NoChange, Reason, Refused, Transition
from executor.engine import endings
from executor.engine.click import NotConfirmed, refused_answer
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.rights import read_rights
from executor.store import approvals, cards, journal, operations, tenants
from executor.store.cards import Notice
from executor.store.operations import OperationKey, OperationRow
from executor.store.people import read_identities
from executor.store.wakeups import Kind


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """One person's wish to take an operation back; ``request_hash`` is of the signed request.

    ``channel`` and ``user_id`` are where that person is answered privately.
    """

    tenant_id: TenantId
    operation_id: OperationId
    principal: PrincipalId
    channel: str
    user_id: str
    request_hash: bytes

    @property
    def key(self) -> OperationKey:
        """The operation that is taken back."""
        return self.tenant_id, self.operation_id


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The operation has ended, and nothing of it was done."""

    number: int


WithdrawResult = Withdrawn | NoChange | Refused | NotConfirmed


def answer(result: WithdrawResult, number: int | None) -> JsonObject | None:
    """Spell the private answer as it is queued; ``None`` where there is nothing new to say."""
    match result:
        case Withdrawn():
            return {"kind": "withdrawn", "operation": number}
        case Refused():
            return refused_answer(result, number)
        case NoChange() | NotConfirmed():
            return None
        case _:
            assert_never(result)


async def withdraw(engine: Engine, wish: Withdrawal) -> WithdrawResult:
    """Take an operation back and say what that came to; refusals are journaled.

    Opens its own transaction. The same signed request again changes nothing. Raises
    ``CommitUnknown``: see ``read_back``.
    """
    tenant, key = wish.tenant_id, wish.key
    async with engine.committing(Commit.WITHDRAW) as conn:
        if not await approvals.remember_requests(conn, [(tenant, wish.request_hash)]):
            return NoChange()
        policies = await tenants.share_policies(conn, [tenant])
        rows = await operations.lock(conn, [key])
        consents = await approvals.lock(conn, list(rows))
        people = await read_identities(conn, [(tenant, wish.principal)])
        rights = await read_rights(conn, policies, [(tenant, wish.principal)])
        chain = await endings.lock_cards_and_chain(conn, list(rows.values()))
        row, policy = rows.get(key), policies.get(tenant)
        if row is None or policy is None:
            return Refused(Reason.CONTENT_CHANGED)
        authority = rights.authority(policy, chain.now)
        result = _judge(row, authority, people.get((tenant, wish.principal)), wish.principal)
        if isinstance(result, Refused):
            refused: JsonObject = {"asked": "withdraw", "reason": result.reason.value}
            note = chain.note(
                tenant, row.run_id, row.id, "decision_refused", wish.principal, refused
            )
            await journal.write_notes(conn, [note])
        else:
            await endings.end_unopened(
                conn, [(row, consents.get(key), result)], wish.principal, chain
            )
        said: WithdrawResult = result if isinstance(result, Refused) else Withdrawn(row.number)
        told = answer(said, row.number)
        assert told is not None
        notice = Notice(tenant, engine.mint(), wish.channel, wish.user_id, told)
        await cards.queue_notices(conn, [notice], chain.now)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    engine.ring(Kind.WORK)
    return said


def _judge(
    row: OperationRow, authority: Authority, person: Identity | None, principal: PrincipalId
) -> operation.TakenBack | Refused:
    """Say how it ends, or why it does not: the person first, then what it is about."""
    reason = Reason.WITHDRAWN_BY_REQUESTER
    if row.requester != principal:
        reason = Reason.WITHDRAWN_BY_OPERATOR
        may_not = authority.objection(principal, Permission.OPERATE)
        if may_not is not None and not is_operator(principal):
            stale = may_not.reason is not Reason.NOT_PERMITTED
            return may_not if stale else Refused(Reason.NOT_YOURS_TO_WITHDRAW)
    if not is_operator(principal):
        unknown = identity.objection(person, authority.policy.slack.team, now=authority.now)
        if unknown is not None:
            return unknown
    event = operation.TakenBack(principal, reason)
    decision = operation.decide(row.status, event)
    if isinstance(decision, Transition):
        return event
    if isinstance(decision, Refused):
        return decision
    return Refused(operation.refusal_for(row.status))


async def read_back(engine: Engine, wish: Withdrawal) -> WithdrawResult:
    """After ``CommitUnknown``: say whether this person has taken it back.

    Opens its own transaction.
    """
    try:
        async with engine.database.transaction() as conn:
            # Waits for the transaction in doubt, if it is still under way.
            row = (await operations.lock(conn, [wish.key])).get(wish.key)
    except CommitUnknown:
        return NotConfirmed()
    if row is None or row.status is not OperationStatus.WITHDRAWN:
        return NotConfirmed()
    return Withdrawn(row.number) if row.detail.get("by") == wish.principal else NotConfirmed()
