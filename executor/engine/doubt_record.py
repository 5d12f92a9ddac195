"""What a card says where nobody knows whether something was done, and a person may settle it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from executor.domain.approval import ApprovalStatus
from executor.domain.effect import AttemptStatus, EffectStatus
from executor.domain.grant import Resource
from executor.domain.ids import ApprovalId, AttemptId, OperationId, PrincipalId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.risk import RiskFacts
from executor.domain.run import RunStatus
from executor.domain.terms import Terms, terms_for
from executor.domain.ticket import Ticket
from executor.domain.transition import Reason
from executor.engine.approval_record import ApprovalRecord, vote_records
from executor.engine.revalidation import requester_objection
from executor.engine.rights import read_rights
from executor.engine.sending_again import Circumstances, objection_to_repeating
from executor.store import approvals, clock, operation_lookups, tenants
from executor.store.card_records import AnyRow
from executor.store.connection import Connection


@dataclass(frozen=True, slots=True)
class DoubtRecord:
    """What a person may settle now: the newest attempt, which no machine looks at any more.

    ``not_again`` is why nobody may have it tried once more; ``None``: a repeat would pass the
    checks of its opening, as far as they can be known when the record is read. It needs ``quorum``
    people; ``repeat`` is what the first of them have begun.
    """

    attempt_id: AttemptId
    not_again: Reason | None
    quorum: int
    repeat: ApprovalRecord | None

    @property
    def may_send_again(self) -> bool:
        """Whether *send again* can be said now."""
        return self.not_again is None


async def read_doubt(
    conn: Connection,
    tenant: TenantId,
    row: AnyRow,
    ticket: Ticket | None,
    parts: Sequence[AnyRow],
    tries: Sequence[AnyRow],
) -> DoubtRecord | None:
    """Say what a person may settle; while a machine will look again, it is asked first."""
    unknown = [p.id for p in parts if p.status == EffectStatus.UNKNOWN]
    if row.status != OperationStatus.UNKNOWN or not unknown:
        return None
    if any(t.recover_at is not None for t in tries if t.status == AttemptStatus.UNKNOWN):
        return None
    newest = [t for t in tries if t.effect_id == unknown[0]][-1]
    policy = (await tenants.share_policies(conn, [tenant]))[tenant]
    same_key = await operation_lookups.of_keys(conn, [(tenant, row.intent_key)])
    requester = PrincipalId(row.requester)
    rights = await read_rights(conn, {tenant: policy}, [(tenant, requester)])
    authority = rights.authority(policy, await clock.now(conn))
    resource = Resource(row.kind, row.place, row.thing)
    circumstances = Circumstances(
        requester=requester_objection(authority, requester, resource),
        run=RunStatus(row.run_status),
        desk=row.desk,
        ticket=ticket,
        ticket_id=row.ticket_id,
        closed_version=row.closed_version,
        already_done=any(status is OperationStatus.SUCCEEDED for *_, status in same_key),
    )
    refused = objection_to_repeating(circumstances)
    return DoubtRecord(
        AttemptId(newest.id),
        None if refused is None else refused.reason,
        terms_for(policy, row.kind, RiskFacts.from_json(row.risks)).quorum,
        await _repeat(conn, tenant, OperationId(row.id), newest.id),
    )


async def _repeat(
    conn: Connection, tenant: TenantId, id_: OperationId, attempt: UUID
) -> ApprovalRecord | None:
    """Read what people have begun: an open approval of a repeat after this very attempt."""
    row = await approvals.newest_repeat(conn, tenant, id_)
    if row is None or row.repeats_attempt != attempt or row.status != ApprovalStatus.OPEN:
        return None
    return ApprovalRecord(
        ApprovalId(row.id),
        ApprovalStatus(row.status),
        Terms.from_json(row.terms),
        vote_records(await approvals.votes_of(conn, tenant, ApprovalId(row.id))),
        row.decide_by,
        row.use_by,
    )
