"""Searches that are recorded and may be made, each once: one look at a provider, outside any
transaction, whose answer is recorded like any other fact, or kept where it proves nothing.

A mail provider is asked for our reference; an outside desk is read, and tells whether our own
change is there. Killed in between, a search is lost and never made twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from executor.domain import recovery
from executor.domain.effect import AT_A_DESK, AttemptStatus, Capability, Outcome, OutcomeKind
from executor.domain.errors import ExecutorError
from executor.domain.finding import Finding
from executor.domain.payloads import JsonObject, JsonValue
from executor.engine import endings
from executor.engine.call import has_moved
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.outgoing import outgoing_change
from executor.engine.ports import LookupKind, SearchableMail
from executor.engine.providers import Providers
from executor.engine.report import Report, report
from executor.engine.sighting import judge_note, look_again
from executor.store import cards, effects, journal, operations
from executor.store.cards import SubjectKind
from executor.store.operations import OperationKey
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

SEARCHES_AT_ONCE = 4
ACTOR = "recovery"


@dataclass(frozen=True, slots=True)
class Search:
    """A search for what became of the newest attempt; ``number`` counts those of it.

    ``doubtful`` are all attempts at the effect that are unknown: what proves that it was not and
    will not be done is true of each of them.
    """

    row: effects.AttemptRow
    part: effects.EffectRow
    doubtful: tuple[effects.AttemptRow, ...]
    number: int

    @property
    def key(self) -> OperationKey:
        """The operation that it is made for."""
        return self.row.tenant_id, self.row.operation_id


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a search said; ``word`` names it for people, ``outcome`` is what it proves."""

    word: str
    outcome: Outcome


async def search_all(engine: Engine, providers: Providers, searches: Sequence[Search]) -> None:
    """Make recorded searches, a few at once; one that fails stops no other."""
    room = asyncio.Semaphore(SEARCHES_AT_ONCE)

    async def one(search: Search) -> None:
        async with room:
            try:
                await _search(engine, providers, search)
            except ExecutorError as error:
                _log.warning("a search of %s was lost: %s", search.row.attempt.id, error)
            except Exception:
                _log.exception("a search of %s failed", search.row.attempt.id)

    await asyncio.gather(*(one(search) for search in searches))


async def _search(engine: Engine, providers: Providers, search: Search) -> None:
    """Ask once and record the answer, as a fact if it proves anything."""
    if search.part.kind in AT_A_DESK:
        answer = await _read_the_desk(providers, search)
    else:
        answer = await _ask_the_mail_provider(providers, search)
    told = f"{answer.word} ({search.number} of {recovery.MOST_LOOKUPS})"
    match answer.outcome.kind:
        case OutcomeKind.UNKNOWN:
            await _keep(engine, search, answer, told)
            return
        case OutcomeKind.APPLIED:
            proved: tuple[effects.AttemptRow, ...] = (search.row,)
        case OutcomeKind.NOT_APPLIED:
            proved = search.doubtful
    outcome = Outcome(answer.outcome.kind, {**answer.outcome.evidence, "search": told})
    reports = [Report(search.key, row.attempt.id, outcome, ACTOR) for row in proved]
    await report(engine, reports, Commit.RECORD_SEARCH)
    if providers.desk is not None and has_moved(search.part.kind, outcome):
        ticket_id = outgoing_change(search.part).ticket_id
        await look_again(engine, providers.desk, search.key, ticket_id)


async def _ask_the_mail_provider(providers: Providers, search: Search) -> _Answer:
    """Search for our reference; only a found mail proves anything."""
    mail = providers.mail
    assert isinstance(mail, SearchableMail), "only such a provider is searched"
    since = search.part.first_attempt_at or search.row.attempt.opened_at
    found = await mail.look_up(search.part.id.hex, since)
    applied = found.kind is LookupKind.FOUND
    kind = OutcomeKind.APPLIED if applied else OutcomeKind.UNKNOWN
    return _Answer(found.kind.value, Outcome(kind, found.evidence, retry_after=found.retry_after))


async def _read_the_desk(providers: Providers, search: Search) -> _Answer:
    """Read what became of our change; what it proves is the desk's own conclusion."""
    assert providers.desk is not None, "only a desk that is set up is read"
    found = await providers.desk.read_back(outgoing_change(search.part))
    outcome = judge_note(search.part.kind, found)
    return _Answer(str(outcome.evidence.get("finding", Finding.UNREAD.value)), outcome)


async def _keep(engine: Engine, search: Search, answer: _Answer, told: str) -> None:
    """Keep what a search said that proves nothing; the next step is planned already, or is now."""
    async with engine.committing(Commit.RECORD_SEARCH) as conn:
        rows = await operations.lock(conn, [search.key])
        tries = (await effects.attempts_of(conn, [search.key]))[search.key]
        row = rows[search.key]
        chain = await endings.lock_cards_and_chain(conn, [row])
        detail: dict[str, JsonValue] = {
            "number": search.number,
            "kind": answer.word,
            "evidence": answer.outcome.evidence,
        }
        note = chain.note(
            row.tenant_id, row.run_id, search.row.attempt.id, "looked_up", ACTOR, detail
        )
        await journal.write_notes(conn, [note])
        mine = [t for t in tries if t.attempt.effect_id == search.part.id]
        found = next(t for t in mine if t.attempt.id == search.row.attempt.id)
        # Whoever settled it meanwhile, or planned something else, is not overruled.
        if found.recover_at is not None and found.attempt.status is AttemptStatus.UNKNOWN:
            wait, evidence = _what_follows(search, answer, mine)
            later = chain.now + max(wait, answer.outcome.retry_after or timedelta(0))
            # Only where a repeat is guarded does its time come before that of the next search.
            guarded = found.attempt.capability is Capability.CONDITIONAL
            unchanged = evidence.get("finding") == Finding.UNCHANGED
            planned = later if guarded and unchanged else max(found.recover_at, later)
            kept = {**found.attempt.evidence, **evidence, "search": told}
            plan = effects.RecoveryPlan(found, planned, found.attempt.lookups, kept)
            await effects.plan_recoveries(conn, [plan])
        await cards.want(conn, [(row.tenant_id, row.id, SubjectKind.OPERATION)], chain.now)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)


def _what_follows(
    search: Search, answer: _Answer, tries: Sequence[effects.AttemptRow]
) -> tuple[timedelta, JsonObject]:
    """Return how long to wait after a reading, and what of it stands with the attempt."""
    if search.part.kind not in AT_A_DESK:
        return timedelta(0), {}
    attempts = [t.attempt for t in tries]
    finding = Finding(answer.word)
    told: dict[str, JsonValue] = {**recovery.reading_told(finding, attempts)}
    for name in ("ticket_status", "updated_at", "noted", "problem"):
        if name in answer.outcome.evidence:
            told[f"seen_{name}"] = answer.outcome.evidence[name]
    match finding:
        case Finding.UNCHANGED:
            return recovery.wait_after_reading(attempts), told
        case Finding.UNREAD:
            return recovery.READING_LAG * 2**search.number, told
        case Finding.MARKER | Finding.MOVED:
            return timedelta(0), told
