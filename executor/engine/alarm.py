"""What an operator has to hear of at once, besides finding it on a card or in ``signoff doubt``."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

from executor.domain.effect import EffectStatus
from executor.domain.operation import OperationStatus
from executor.store.effects import EffectRow
from executor.store.operations import OperationKey, OperationRow
from executor.store.unseen import UnseenAlarm

_log = logging.getLogger(__name__)


def tell_contradiction(row: OperationRow, part: EffectRow) -> None:
    """Name a ticket that was opened again although its email, as proof says now, was sent."""
    if row.status is OperationStatus.COMPENSATED:
        _log.error(
            "op_%d: %s was done after all, and ticket %s had been opened again because it was not "
            "(tenant %s): nothing is undone by itself, somebody has to look",
            row.number,
            part.kind.value,
            row.ticket_id,
            row.tenant_id,
        )


def tell_doubts(
    before: Mapping[OperationKey, OperationStatus],
    rows: Mapping[OperationKey, OperationRow],
    parts: Mapping[OperationKey, Sequence[EffectRow]],
) -> None:
    """Name each operation that has become unknown; called after that was committed."""
    for key, row in rows.items():
        if row.status is not OperationStatus.UNKNOWN or before.get(key) is row.status:
            continue
        lost = [p for p in parts[key] if p.status is EffectStatus.UNKNOWN]
        where = ", ".join(f"{p.kind.value} through {p.provider}" for p in lost)
        _log.error(
            "op_%d is unknown, nobody knows whether it was done: %s (tenant %s, run %s); "
            "`signoff doubt show op_%d --tenant %s` tells what comes next",
            row.number,
            where,
            row.tenant_id,
            row.run_id,
            row.number,
            row.tenant_id,
        )


def tell_unseen(found: UnseenAlarm) -> None:
    """Name an approval that nobody can see; called once each, after that was committed."""
    _log.error(
        "op_%d waits for a decision that nobody can make: its card is not shown for %d s (%s; "
        "tenant %s, run %s); docs/operations.md, Cards that are not shown, tells what to do",
        found.number,
        found.unseen_for.total_seconds(),
        found.problem or "no bot posts cards",
        found.tenant_id,
        found.run_id,
    )


def tell_seen(row: OperationRow, unseen_for: timedelta) -> None:
    """Say that an approval for which there was an alarm can be seen now."""
    _log.warning(
        "op_%d is shown now, after %d s in which nobody could see it (tenant %s, run %s)",
        row.number,
        unseen_for.total_seconds(),
        row.tenant_id,
        row.run_id,
    )
