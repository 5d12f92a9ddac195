"""Reminders and escalation: each comes once, to whose votes are lacking, and decides nothing."""

from __future__ import annotations

import asyncio

from executor.domain.nudge import NudgeKind
from executor.engine.nudging import nudge
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.store import nudges
from tests.support.office import RENE, Office, policy

RULES = policy(
    approval={
        "quorum": 2,
        "decide_within_seconds": 3_600,
        "remind_after_seconds": [600, 1_200],
        "escalate_after_seconds": 1_800,
        "escalate_to": ["U0LEAD", "group:S0LEADS"],
    }
)


async def _made(office: Office) -> list[tuple[str, list[str]]]:
    return [
        (kind, whom)
        for kind, whom in await office.rows("SELECT kind, whom FROM nudges ORDER BY made_at, id")
    ]


async def test_whoever_may_still_decide_is_reminded_and_then_others_are_told(
    office: Office,
) -> None:
    await activate_policy(office.engine, RULES)
    operation = await office.proposed()
    await sweep(office.engine)
    assert await _made(office) == []
    await office.later(seconds=600)
    await sweep(office.engine)
    await sweep(office.engine)
    # Riko asked for it and may not decide; the others are named by the policy.
    everybody = ("reminder", ["U0REVIEWER", "U0SECOND"])
    assert await _made(office) == [everybody]
    await office.click(operation, RENE)
    await office.later(seconds=600)
    await sweep(office.engine)
    lacking = ("reminder", ["U0SECOND"])
    assert await _made(office) == [everybody, lacking]
    await office.later(seconds=600)
    await sweep(office.engine)
    assert await _made(office) == [everybody, lacking, ("escalation", ["U0LEAD", "group:S0LEADS"])]
    await office.later(seconds=1_800)
    await sweep(office.engine)
    assert await office.status(operation) == "expired"
    assert len(await _made(office)) == 3
    notes = await office.rows("SELECT actor FROM journal WHERE event = 'nudged'")
    assert notes == [("clock",)] * 3


async def test_nobody_is_reminded_of_what_was_decided(office: Office) -> None:
    await activate_policy(office.engine, policy(approval={"remind_after_seconds": [600]}))
    operation = await office.proposed()
    await office.click(operation)
    await office.later(seconds=601)
    async with office.database.transaction() as conn:
        assert await nudges.to_make(conn, 10) == []
    assert await nudge(office.engine, [(office.tenant, operation)]) == 0
    assert await _made(office) == []


async def test_after_a_standstill_each_kind_is_told_once(office: Office) -> None:
    await activate_policy(office.engine, RULES)
    operation = await office.proposed()
    await office.later(seconds=3_000)
    key = [(office.tenant, operation)]
    assert await nudge(office.engine, key) == 2
    assert await nudge(office.engine, key) == 0
    kinds = {kind for kind, _ in await _made(office)}
    assert kinds == {NudgeKind.REMINDER.value, NudgeKind.ESCALATION.value}


async def test_two_who_sweep_at_once_remind_once(office: Office) -> None:

    await activate_policy(office.engine, RULES)
    operation = await office.proposed()
    await office.later(seconds=600)
    key = [(office.tenant, operation)]
    other = office.colleague()
    made = await asyncio.gather(nudge(office.engine, key), nudge(other.engine, key))
    assert sorted(made) == [0, 1]
