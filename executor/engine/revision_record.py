"""What a card says of the operations before and after its own, where one took another's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from executor.domain.ids import PrincipalId
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.store import revisions
from executor.store.card_records import AnyRow
from executor.store.connection import Connection
from executor.store.operations import OperationKey


@dataclass(frozen=True, slots=True)
class PreviousRevision:
    """The operation whose place this one took; ``email`` is as ``EmailContent.as_json``.

    It stands ``superseded`` where other words took its place, ``stale`` where it was out of date
    and the same was proposed again.
    """

    number: int
    status: OperationStatus
    email: JsonObject | None


@dataclass(frozen=True, slots=True)
class SuccessorRecord:
    """The operation that took this one's place; ``editor`` is the person who wrote it."""

    number: int
    editor: PrincipalId | None


def email_of(intent: dict[str, Any]) -> JsonObject | None:
    """Find the email that an intent would send."""
    return next((e["email"] for e in intent["effects"] if "email" in e), None)


async def previous_of(conn: Connection, key: OperationKey, row: AnyRow) -> PreviousRevision | None:
    """Read what an operation took the place of; only a later revision can have done so."""
    before = await revisions.predecessor_of(conn, key) if row.content_revision > 1 else None
    if before is None:
        return None
    return PreviousRevision(before.number, before.status, email_of(before.intent))


async def successor_of(conn: Connection, key: OperationKey, row: AnyRow) -> SuccessorRecord | None:
    """Read what took the place of an operation."""
    if row.status not in (OperationStatus.SUPERSEDED, OperationStatus.STALE):
        return None
    after = await revisions.successor_of(conn, key)
    return None if after is None else SuccessorRecord(after.number, after.editor)


def asked_again_by(
    row: AnyRow,
    previous: PreviousRevision | None,
    asked: Sequence[tuple[PrincipalId, bool]],
) -> tuple[PrincipalId, ...]:
    """Name who asked again for what had been out of date; ``asked`` are all its requesters."""
    if previous is None or previous.status is not OperationStatus.STALE:
        return ()
    return tuple(who for who, linked in asked if not linked and who != row.requester)
