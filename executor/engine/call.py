"""The call: the frozen bytes leave outside any transaction, before the attempt's deadline, once.

Right before the first byte the attempt is read again, and the deadline is compared on three clocks:
the database's, this host's wall clock, and a clock that went on while the machine was suspended.
What was never sent is reported as such, for that is proof.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import assert_never

from executor.domain.effect import AT_A_DESK, AttemptStatus, EffectKind, Outcome, OutcomeKind
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.domain.finding import Finding
from executor.domain.payloads import storable
from executor.engine.desk_port import NotedDesk
from executor.engine.engine import Engine
from executor.engine.failpoint import CALL, Side, point
from executor.engine.leases import Keeper
from executor.engine.opening import Claim, Opened
from executor.engine.outgoing import outgoing_call, outgoing_change, outgoing_mail
from executor.engine.providers import Providers
from executor.engine.report import Report, report
from executor.engine.sighting import look_again
from executor.store import effects

_log = logging.getLogger(__name__)

REPORT_TRIES = 30
LONGEST_REPORT_DELAY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment before which the first byte must leave, on this host's clocks.

    Both count from before the opening was sent, so that a slow COMMIT cannot stretch them.
    """

    boottime: float
    seconds: float


def deadline_from(engine: Engine, asked_at_boottime: float) -> Deadline:
    """Count an attempt's deadline from before its opening was sent."""
    seconds = engine.durations.first_byte_seconds
    return Deadline(asked_at_boottime + seconds, seconds)


async def call(
    engine: Engine,
    providers: Providers,
    claim: Claim,
    keeper: Keeper,
    opened: Opened,
    deadline: Deadline,
) -> None:
    """Send an opened attempt once and report what came of it.

    Cancellation leaves the attempt open: the reconciler concludes it after its last moment.
    """
    too_late = await _objection(engine, claim, keeper, opened, deadline)
    if too_late is not None:
        outcome = Outcome(
            OutcomeKind.NOT_APPLIED, {"phase": "never_left", "problem": too_late}, retryable=True
        )
    else:
        await engine.failpoints.reach(point(CALL, Side.BEFORE))
        outcome = await _request(providers, opened)
        if opened.effect.kind is EffectKind.TOOL_CALL:
            outcome = _without_secrets(engine, outcome)
        await engine.failpoints.reach(point(CALL, Side.AFTER))
    await report_until_stored(engine, Report(claim.key, opened.attempt.id, outcome, claim.owner))
    if providers.desk is not None and has_moved(opened.effect.kind, outcome):
        ticket_id = outgoing_change(opened.effect).ticket_id
        await look_again(engine, providers.desk, claim.key, ticket_id)


async def _request(providers: Providers, opened: Opened) -> Outcome:
    """Make the one request that this kind of effect is."""
    part = opened.effect
    match part.kind:
        case EffectKind.EMAIL_SEND:
            return await providers.mail.send(outgoing_mail(part, opened.attempt.opened_at))
        case EffectKind.TICKET_NOTE:
            assert isinstance(providers.desk, NotedDesk), "only such a desk gets such an effect"
            return await providers.desk.leave_note(outgoing_change(part))
        case EffectKind.TICKET_CLOSE:
            assert providers.desk is not None, "the check of the provider has let it"
            return await providers.desk.close(outgoing_change(part))
        case EffectKind.TICKET_REOPEN:
            assert providers.desk is not None, "the check of the provider has let it"
            return await providers.desk.reopen(outgoing_change(part))
        case EffectKind.TOOL_CALL:
            server = providers.server(part.provider, opened.servers)
            assert server is not None, "the check of the provider has let it"
            return await server.call(outgoing_call(part))
        case EffectKind.BUDGET_RAISE:
            raise AssertionError("a raise is applied with its record and never called")
        case _:
            assert_never(part.kind)


def _without_secrets(engine: Engine, outcome: Outcome) -> Outcome:
    """Hide secrets in what a tool returned: a model will read it, and people."""
    evidence = engine.secrets.hide_in(storable(outcome.evidence))
    assert isinstance(evidence, dict)
    return replace(outcome, evidence=evidence)


def has_moved(kind: EffectKind, outcome: Outcome) -> bool:
    """Say whether nothing was done because somebody else has changed the ticket."""
    return (
        kind in AT_A_DESK
        and outcome.kind is OutcomeKind.NOT_APPLIED
        and outcome.evidence.get("finding") == Finding.MOVED
    )


async def _objection(
    engine: Engine, claim: Claim, keeper: Keeper, opened: Opened, deadline: Deadline
) -> str | None:
    """Say why the first byte may not leave any more, or ``None``."""
    try:
        async with engine.database.transaction() as conn:
            look = await effects.last_look(conn, claim.key[0], opened.attempt.id)
    except (DatabaseUnavailable, CommitUnknown) as error:
        return f"the attempt could not be read again: {error}"
    if look is None or look.status is not AttemptStatus.DISPATCHED:
        return "the attempt is not open any more"
    if look.epoch != claim.epoch or (look.lease_owner, look.lease_epoch) != (
        claim.owner,
        claim.epoch,
    ):
        return "the lease was lost"
    boottime = engine.clock.boottime()
    if not keeper.trusted():
        return "the lease could not be trusted any more"
    if look.now >= look.deadline_at or boottime >= deadline.boottime:
        return "its deadline had passed"
    allowance = timedelta(seconds=engine.durations.clock_allowance_seconds)
    if engine.clock.wall() >= opened.attempt.deadline_at + allowance:
        return "its deadline had passed on this host's clock"
    return None


async def report_until_stored(engine: Engine, item: Report) -> None:
    """Report a fact again and again while the database is away; reporting twice is harmless.

    Gives up after ``REPORT_TRIES``: then the reconciler concludes what is known without it.
    """
    delay = 0.1
    for _ in range(REPORT_TRIES):
        try:
            await report(engine, [item])
        except (DatabaseUnavailable, CommitUnknown) as error:
            _log.warning("attempt %s: its outcome is not stored yet: %s", item.attempt_id, error)
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_REPORT_DELAY_SECONDS)
        else:
            return
    _log.error("attempt %s: its outcome %s could not be stored", item.attempt_id, item.outcome.kind)
