"""What comes next for an unknown effect is recorded with its attempts, before anything is done.

The newest unknown attempt carries the time; the others carry none, so that one effect is due at
most once. Where no machine can go on, nothing is due and the evidence says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from executor.domain.effect import AttemptStatus, Capability, Terms
from executor.domain.recovery import (
    AskPerson,
    Declared,
    LookUp,
    Recovery,
    SendAgain,
    Settled,
    Wait,
    recover,
    without_reading,
)
from executor.domain.transition import Reason, Refused
from executor.engine.engine import Engine
from executor.engine.providers import Account, Providers
from executor.store import effects

_SEEN_OTHERWISE = frozenset({Reason.VERSION_CHANGED, Reason.TICKET_UNKNOWN})


def declared(engine: Engine, account: Account) -> Declared:
    """Return what this provider account allows now, as it is recorded with each new attempt."""
    durations = engine.durations
    margin = timedelta(
        seconds=durations.first_byte_seconds
        + account.longest_request_seconds
        + durations.clock_allowance_seconds
    )
    return Declared(account.declaration.capability, account.declaration.terms, margin)


def declared_for(
    engine: Engine, providers: Providers, part: effects.EffectRow, provider: str
) -> Declared:
    """Return what holds now for an attempt that was made at ``provider``.

    Another account can neither drop the repeat nor find what was done, and neither can none.
    """
    account = providers.account_for(part.kind, provider)
    if account is None:
        return Declared(Capability.OPAQUE, Terms(), timedelta(0))
    terms = declared(engine, account)
    return terms if account.name == provider else replace(terms, capability=Capability.OPAQUE)


def plans(
    tries: Sequence[effects.AttemptRow], decision: Recovery, now: datetime
) -> list[effects.RecoveryPlan]:
    """Spell a decision about one effect as what is stored with its unknown attempts."""
    unknown = [t for t in tries if t.attempt.status is AttemptStatus.UNKNOWN]
    if not unknown:
        return []
    match decision:
        case Wait(until=until):
            due: datetime | None = until
        case SendAgain() | LookUp():
            due = now
        case AskPerson() | Settled():
            due = None
    newest = max(unknown, key=lambda t: t.attempt.number)
    evidence = dict(newest.attempt.evidence)
    if isinstance(decision, AskPerson) and newest.attempt.capability is not Capability.OPAQUE:
        evidence["a_person_is_asked"] = decision.why.value
    return [
        effects.RecoveryPlan(t, None, t.attempt.lookups, t.attempt.evidence)
        for t in unknown
        if t is not newest
    ] + [effects.RecoveryPlan(newest, due, newest.attempt.lookups, evidence)]


def repeat_objection(
    engine: Engine,
    providers: Providers,
    part: effects.EffectRow,
    tries: Sequence[effects.AttemptRow],
    refused: Refused | None,
    now: datetime,
) -> tuple[Refused | None, list[effects.RecoveryPlan]]:
    """Say why an unknown effect may not be handed over again now; with it, a person is asked.

    ``refused`` is what revalidation says. Who has to be looked at first is waited for only as long
    as the key lasts.
    """
    waits = refused is not None and refused.reason is Reason.IDENTITY_UNKNOWN
    decision = recover(
        [t.attempt for t in tries],
        declared_for(engine, providers, part, part.provider),
        may_send=refused is None or waits,
        now=now,
        not_before=now,
    )
    if isinstance(decision, SendAgain):
        return refused, []
    asked = plans(tries, decision, now)
    if refused is not None and refused.reason in _SEEN_OTHERWISE:
        # Or the next step would be to send again, which is refused again, without an end.
        asked = [replace(plan, evidence=without_reading(plan.evidence)) for plan in asked]
    told = Refused(Reason.OUTCOME_LOST) if refused is None or waits else refused
    return told, asked
