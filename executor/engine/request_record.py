"""Reads what agents asked for, and what it has come to, as their threads tell it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from executor.domain.ids import RunId, TenantId, operation_label
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Refused
from executor.store import agent_requests
from executor.store.agent_requests import Outcome
from executor.store.card_records import AnyRow
from executor.store.connection import Connection


@dataclass(frozen=True, slots=True)
class RequestedOperation:
    """The operation that an agent's request is about, as it stands.

    ``note`` is a reviewer's reason for a no, untrusted; ``edited``: a person wrote what it says.
    """

    label: str
    status: OperationStatus
    reason: Reason | None
    note: str
    edited: bool


@dataclass(frozen=True, slots=True)
class RequestedRun:
    """The run that an agent's request has come to, as it stands."""

    number: int
    status: RunStatus
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """What an agent asked for in one message, and what it has come to; ``kind`` as it named it.

    ``refused`` is why nothing was begun. ``again``: an earlier message with the same key has begun
    it. With an ``operation`` and no ``run`` it was answered by what others had asked for before.
    """

    tenant_id: TenantId
    id: UUID
    kind: str | None
    request_key: str | None
    refused: Refused | None
    again: bool
    run: RequestedRun | None
    operation: RequestedOperation | None


async def read_request(conn: Connection, tenant: TenantId, id_: UUID) -> RequestRecord:
    """Read everything that the answer to one request may say."""
    row = await agent_requests.show(conn, tenant, id_=id_)
    assert row is not None, "an answered request exists"
    return _record(tenant, row)


async def request_of_run(conn: Connection, tenant: TenantId, run_id: RunId) -> RequestRecord | None:
    """Read the request that a run was accepted for, where an agent asked for it."""
    row = await agent_requests.show(conn, tenant, run_id=run_id)
    return None if row is None else _record(tenant, row)


def _record(tenant: TenantId, row: AnyRow) -> RequestRecord:
    outcome = Outcome(row.outcome)
    refused = outcome is Outcome.REFUSED
    run = None
    if row.run_number is not None:
        run = RequestedRun(
            row.run_number,
            RunStatus(row.run_status),
            None if row.run_reason is None else Reason(row.run_reason),
        )
    return RequestRecord(
        tenant,
        row.id,
        row.kind,
        row.request_key,
        Refused(Reason(row.answer["reason"]), row.answer["detail"]) if refused else None,
        outcome is Outcome.REPEATED,
        run,
        _answered(row) if outcome is Outcome.ANSWERED else _operation(row),
    )


def _operation(row: AnyRow) -> RequestedOperation | None:
    if row.operation_number is None:
        return None
    status = OperationStatus(row.operation_status)
    note = row.operation_detail.get("note") if status is OperationStatus.REJECTED else None
    return RequestedOperation(
        operation_label(row.operation_number),
        status,
        None if row.operation_reason is None else Reason(row.operation_reason),
        str(note or ""),
        row.editor is not None,
    )


def _answered(row: AnyRow) -> RequestedOperation:
    """Read the operation that has answered a request at once, as it stood then."""
    told = row.answer
    return RequestedOperation(
        str(told["operation"]),
        OperationStatus(told["status"]),
        Reason(told["reason"]) if "reason" in told else None,
        str(told.get("rejected_because", "")),
        edited=False,
    )
