"""Late evidence: what a provider says about a mail after the call is over turns doubt into fact.

An event about a mail of ours proves that the provider had accepted it. It is stored once, and in
the same commit the newest attempt that is not yet known to be applied becomes applied, whoever
holds the lease: this is a report like any other. A bounce or a complaint comes after acceptance, so
it is a note and never a failure of the send. Events about effects that are not known here are kept
as long as a provider keeps its own and matched when they are.

What people had begun to approve in the meantime, to have it sent again, ends with the doubt.

Locks: late evidence, operations, effects and attempts, cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from uuid import UUID

from executor.domain.delivery_event import DeliveryEvent, DeliveryKind
from executor.domain.effect import AttemptStatus, EffectStatus, Outcome, OutcomeKind
from executor.domain.ids import EffectId, TenantId
from executor.domain.journal import Chain
from executor.domain.payloads import JsonObject, JsonValue
from executor.engine import endings
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.group import together_or_apart
from executor.engine.repeat_approval import end_overtaken, repeats_of
from executor.engine.report import Report, State, fold
from executor.store import cards, effects, journal, late_evidence, operations
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.late_evidence import LateEvidence, NamedEffect
from executor.store.wakeups import Kind

AT_ONCE = 100
KEPT_SECONDS = 45 * 86_400.0
"""How long Postmark can be asked about a mail (Postmark, "Messages API", 2026), the longest."""

ACCEPTED_THEN = "accepted_then_{kind}"
"""The journal's note about a mail that was accepted and then did not arrive, or was not wanted."""

_FELL_THROUGH = frozenset(
    {
        DeliveryKind.BOUNCED,
        DeliveryKind.COMPLAINED,
        DeliveryKind.FAILED,
        DeliveryKind.SUPPRESSED,
    }
)
_SHOWN = _FELL_THROUGH | {DeliveryKind.DELIVERED}
"""What the card tells of a mail that is known to be accepted."""


class Recorded(StrEnum):
    """What an event came to."""

    MATCHED = "matched"
    KEPT = "kept"
    AGAIN = "again"
    NOT_OURS = "not_ours"


async def record(engine: Engine, tenant: TenantId, provider: str, event: DeliveryEvent) -> Recorded:
    """Store an authentic event and take it in, in one commit.

    ``provider`` is the provider's name without the account. Opens its own transaction. The same
    event again changes nothing. Raises ``CommitUnknown``: recording again is harmless.
    """
    effect_id = _effect_id(event.reference)
    if effect_id is None:
        return Recorded.NOT_OURS
    said = LateEvidence(
        tenant,
        provider,
        event.event_id,
        effect_id,
        event.provider_id,
        event.kind,
        event.evidence,
        event.happened_at,
    )
    async with engine.committing(Commit.REPORT) as conn:
        if not await late_evidence.put(conn, said):
            return Recorded.AGAIN
        matched = await _take_in(conn, engine, [said])
    _ring(engine)
    return Recorded.MATCHED if matched else Recorded.KEPT


async def match_late_evidence(engine: Engine) -> None:
    """Look again at what nothing was known for; a part of the sweep.

    Opens its own transactions. Several at once do no harm: an event is matched once.
    """
    async with engine.database.transaction() as conn:
        await late_evidence.forget(conn, KEPT_SECONDS)
        due = await late_evidence.due(conn, AT_ONCE)
    if due:
        await together_or_apart(lambda some: _match(engine, some), due)


async def _match(engine: Engine, items: Sequence[LateEvidence]) -> None:
    async with engine.committing(Commit.REPORT) as conn:
        matched = await _take_in(conn, engine, await late_evidence.lock(conn, items))
    if matched:
        _ring(engine)


def _effect_id(reference: str | None) -> EffectId | None:
    try:
        return None if reference is None else EffectId(UUID(reference))
    except ValueError:
        return None


def _ring(engine: Engine) -> None:
    engine.ring(Kind.CARDS)
    engine.ring(Kind.WORK)


async def _take_in(conn: Connection, engine: Engine, items: Sequence[LateEvidence]) -> int:
    """Match stored events that this transaction holds; the others are due again later."""
    named = await late_evidence.effects_named(conn, [item.effect for item in items])
    known = [item for item in items if _is_about(item, named.get(item.effect))]
    await _tell(conn, engine, [i for i in known if _is_news(i, named[i.effect])], named)
    await late_evidence.match(conn, known)
    await late_evidence.put_off(conn, [item for item in items if item not in known])
    return len(known)


def _is_about(item: LateEvidence, effect: NamedEffect | None) -> bool:
    """Say whether the effect is known and left by this provider; an account stands after a colon.

    What another provider says of an effect proves nothing about it.
    """
    return effect is not None and effect.provider.partition(":")[0] == item.provider


def _is_news(item: LateEvidence, effect: NamedEffect) -> bool:
    """Say whether the record or its card may change; ``applied`` has no way out."""
    return item.kind in _SHOWN or effect.status is not EffectStatus.APPLIED


async def _tell(
    conn: Connection,
    engine: Engine,
    items: Sequence[LateEvidence],
    named: dict[late_evidence.EffectKey, NamedEffect],
) -> None:
    if not items:
        return
    rows = await operations.lock(conn, {named[item.effect].operation for item in items})
    parts = await effects.of_operations(conn, list(rows))
    state = State(rows, parts, await effects.attempts_of(conn, list(rows)))
    chain = await endings.lock_cards_and_chain(conn, list(rows.values()))
    repeats = await repeats_of(conn, engine, chain, list(rows.values()), {}, {})
    for item in items:
        key = named[item.effect].operation
        attempt = _in_doubt(item, state.tries[key])
        if attempt is not None:
            outcome = Outcome(OutcomeKind.APPLIED, _evidence(item))
            report = Report(key, attempt.attempt.id, outcome, _actor(item))
            await fold(conn, engine, report, state, chain)
        if item.kind in _FELL_THROUGH:
            await _note(conn, item, state.rows[key], chain)
    await end_overtaken(repeats, state, "webhook")
    await cards.want(conn, [(t, id_, SubjectKind.OPERATION) for t, id_ in rows], chain.now)
    await journal.advance(conn, chain)


def _in_doubt(item: LateEvidence, tries: Sequence[effects.AttemptRow]) -> effects.AttemptRow | None:
    """Find the newest attempt of the effect, unless one is known to be applied."""
    mine = [t for t in tries if t.attempt.effect_id == item.effect_id]
    if any(t.attempt.status is AttemptStatus.APPLIED for t in mine):
        return None
    return max(mine, key=lambda t: t.attempt.number, default=None)


def _evidence(item: LateEvidence) -> JsonObject:
    """Spell what the conclusion rests on as an answer's evidence is."""
    return {
        **item.evidence,
        "phase": "webhook",
        "id": item.mail_id,
        "happened_at": item.happened_at.isoformat(),
    }


def _actor(item: LateEvidence) -> str:
    return f"webhook:{item.provider}"


async def _note(
    conn: Connection, item: LateEvidence, row: operations.OperationRow, chain: Chain
) -> None:
    detail: dict[str, JsonValue] = {"operation": str(row.id), **_evidence(item)}
    entry = chain.note(
        row.tenant_id,
        row.run_id,
        item.effect_id,
        ACCEPTED_THEN.format(kind=item.kind.value),
        _actor(item),
        detail,
    )
    await journal.write_notes(conn, [entry])
