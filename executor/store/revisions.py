"""Which operation took the place of which, and what people have rejected already; takes no lock."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import OperationId, PrincipalId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason
from executor.store.operations import OperationKey
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class Successor:
    """The operation that took the place of another; ``editor`` is the person who wrote it."""

    id: OperationId
    number: int
    status: OperationStatus
    content_revision: int
    editor: PrincipalId | None


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The operation whose place another took, with its frozen intent."""

    number: int
    intent: dict[str, Any]
    content_revision: int
    status: OperationStatus


@dataclass(frozen=True, slots=True)
class Rejected:
    """What a person said no to; ``detail`` holds who, and why."""

    number: int
    reason: Reason | None
    detail: JsonObject


async def successor_of(conn: AsyncConnection, key: OperationKey) -> Successor | None:
    """Find what took the place of an operation; nothing is replaced twice."""
    row = (await run(conn, "successor_of", tenant=key[0], id=key[1])).one_or_none()
    if row is None:
        return None
    editor = None if row.editor is None else PrincipalId(row.editor)
    return Successor(
        OperationId(row.id), row.number, OperationStatus(row.status), row.content_revision, editor
    )


async def predecessor_of(conn: AsyncConnection, key: OperationKey) -> Predecessor | None:
    """Read what an operation took the place of."""
    row = (await run(conn, "predecessor_of", tenant=key[0], id=key[1])).one_or_none()
    if row is None:
        return None
    return Predecessor(
        row.number, json.loads(row.intent), row.content_revision, OperationStatus(row.status)
    )


async def rejected_of_keys(
    conn: AsyncConnection, tenant: TenantId, intent_keys: Iterable[str]
) -> dict[tuple[str, bytes], Rejected]:
    """Read what was rejected under these intent keys, by key and content digest.

    Read it under the locks of whatever is live under them: a rejection under way is waited for.
    """
    rows = await run(conn, "rejected_of_keys", tenant=tenant, intent_keys=list(intent_keys))
    found: dict[tuple[str, bytes], Rejected] = {}
    for row in rows:
        reason = None if row.reason is None else Reason(row.reason)
        said = Rejected(row.number, reason, row.detail)
        found.setdefault((row.intent_key, bytes(row.content_digest)), said)
    return found
