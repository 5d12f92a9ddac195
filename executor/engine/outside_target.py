"""Whether an outside ticket stands where it was approved or, later, where our own change left it.

Our own note and our own close move the version as anybody's change does. So the first opening
compares the stamp with the approved one; an opening before the close is done asks a reading that
leaves our own note out; and one after it compares with the stamp that our close produced. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from executor.domain.effect import Attempt, AttemptStatus, EffectKind, EffectStatus
from executor.domain.finding import Finding
from executor.domain.ids import desk_marker
from executor.domain.intent import REOPEN_TICKET
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.stamp import Stamp, stamp_from
from executor.domain.ticket import TicketStatus
from executor.domain.transition import Reason, Refused
from executor.engine.desk_port import Observation
from executor.engine.sighting import Sight
from executor.engine.word import SAID
from executor.store.effects import AttemptRow, EffectRow
from executor.store.operations import OperationRow

MOST_TOLD = 10
"""Changes that the reason for a refusal names, the newest."""

_STANDS = frozenset({Finding.UNCHANGED.value, Finding.MARKER.value})


def outside_objection(
    row: OperationRow,
    sight: Sight,
    parts: Sequence[EffectRow],
    tries: Sequence[AttemptRow],
    *,
    first: bool,
) -> Refused | None:
    """Say why the next part may not be opened on what was seen, or ``None``.

    ``tries`` are all attempts at the operation. The reason tells what changed.
    """
    seen = sight.observation
    if seen is None:
        return Refused(Reason.TICKET_UNKNOWN, {"ticket": row.ticket_id})
    if first:
        before = TicketStatus.CLOSED if row.kind == REOPEN_TICKET else TicketStatus.OPEN
        stands = seen.stamp == row.ticket_stamp and seen.ticket.status is before
    elif not _close_is_done(parts):
        stands = sight.own is not None and sight.own.evidence.get("finding") in _STANDS
    else:
        stands = _is_as_we_left_it(row, sight, seen, parts, tries)
    return None if stands else _moved(row, seen, parts)


def learnt_stamp(sight: Sight, parts: Sequence[EffectRow]) -> Stamp | None:
    """Return the version of a close that is done, as a reading of it told."""
    if sight.own is None or not _close_is_done(parts):
        return None
    return stamp_from(sight.own.evidence.get("stamp"))


def _close_is_done(parts: Sequence[EffectRow]) -> bool:
    return any(
        p.kind is EffectKind.TICKET_CLOSE and p.status is EffectStatus.APPLIED for p in parts
    )


def _is_as_we_left_it(
    row: OperationRow,
    sight: Sight,
    seen: Observation,
    parts: Sequence[EffectRow],
    tries: Sequence[AttemptRow],
) -> bool:
    ours = row.closed_stamp or learnt_stamp(sight, parts)
    if ours is not None:
        return seen.stamp == ours
    # A person looked and said that it was closed: then closed is all that can be asked of it.
    closes = {p.id for p in parts if p.kind is EffectKind.TICKET_CLOSE}
    said = any(_rests_on_a_word(t.attempt) for t in tries if t.attempt.effect_id in closes)
    return said and seen.ticket.status is TicketStatus.CLOSED


def _rests_on_a_word(attempt: Attempt) -> bool:
    return attempt.status is AttemptStatus.APPLIED and SAID in attempt.evidence


def _moved(row: OperationRow, seen: Observation, parts: Sequence[EffectRow]) -> Refused:
    markers = [desk_marker(part.id) for part in parts]
    later = [
        change
        for change in seen.ticket.changes
        if change.version > row.ticket_version and not any(m in change.body for m in markers)
    ]
    told: list[Mapping[str, JsonValue]] = [
        {"version": change.version, "kind": change.kind.value, "author": change.author}
        for change in later[-MOST_TOLD:]
    ]
    detail: JsonObject = {
        "approved": row.ticket_version,
        "version": seen.ticket.version,
        "changes": told,
    }
    return Refused(Reason.VERSION_CHANGED, detail)
