"""What comes next for an unknown effect is recorded with its attempts, before anything is done.

The newest unknown attempt carries the time; the others carry none, so that one effect is due at
most once. Where no machine can go on, nothing is due and the evidence says why.
"""

from __future__ import annotations

from collections.abc import Sequence
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
)
from executor.domain.transition import Reason, Refused
from executor.engine.engine import Engine
from executor.engine.ports import KeyedMail, MailPort, SearchableMail
from executor.store import effects


def declared(engine: Engine, mail: MailPort) -> Declared:
    """Return what this provider account allows now, as it is recorded with each new attempt."""
    terms = Terms()
    if mail.capability is Capability.KEYED and isinstance(mail, KeyedMail):
        terms = Terms(key_window=timedelta(seconds=mail.key_window_seconds))
    elif mail.capability is Capability.LOOKUP and isinstance(mail, SearchableMail):
        terms = Terms(lookup_lag=timedelta(seconds=mail.lookup_lag_seconds))
    durations = engine.durations
    margin = timedelta(
        seconds=durations.first_byte_seconds
        + mail.longest_request_seconds
        + durations.clock_allowance_seconds
    )
    return Declared(mail.capability, terms, margin)


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
    mail: MailPort,
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
        declared(engine, mail),
        may_send=refused is None or waits,
        now=now,
        not_before=now,
    )
    if isinstance(decision, SendAgain):
        return refused, []
    told = Refused(Reason.OUTCOME_LOST) if refused is None or waits else refused
    return told, plans(tries, decision, now)
